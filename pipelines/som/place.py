"""Where samples lie on a trained map: their two best matching units and the distances to them, into a store.

Chunks of rows are dealt to the workers, who read, search and write; whoever is done gets the next. A unit is a function
of the sample and the codebook alone, so what a lost worker had in hand is searched for again with the same result.
"""

from __future__ import annotations

import os
import time

import numpy as np
from distributed import Client, Future

from gpuops import best_matching_units
from pipelines.device_arrays import array_library, to_host
from pipelines.progress import Progress
from pipelines.resident import Epoch, ResidentState, clear, held, keep, run_epochs, wait_any, workers_of
from pipelines.som.plan import PIECE_BYTES
from pipelines.som.shard import Shard
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import Mapping, MappingRun, create_mapping, open_mapping, resume_mapping
from pipelines.stores.samples import Samples, open_samples
from pipelines.stores.schema import StoreError

IN_HAND = 2  # tasks a worker has at a time, so that it never waits for the next
RECORD_SECONDS = 1.0  # at least this long between two records of what is done


def map_samples(
    client: Client,
    codebook: Codebook | str | os.PathLike[str],
    samples: Samples | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
) -> Mapping:
    """Find the two best matching units of every sample, and write them with their distances to the store `out`.

    Parameters
    ----------
    client : distributed.Client
    codebook : Codebook or path of a codebook store
    samples : Samples or path of a samples store
        Those the map was trained with, or others of the same columns, dtype and scaling.
    out : path of the new mapping store
    overwrite, resume, progress : as for `pipelines.train_som`

    Returns
    -------
    Mapping
        The finished store, opened; it also gives hits and errors.

    Raises
    ------
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        The samples are none of this map.
    """
    codebook = codebook if isinstance(codebook, Codebook) else open_codebook(codebook)
    samples = samples if isinstance(samples, Samples) else open_samples(samples)
    for name in ("d", "columns", "dtype", "scaling"):
        of_map, of_samples = getattr(codebook, name), getattr(samples, name)
        if of_map != of_samples:
            what = f"{name} {of_samples}, the map {of_map}"
            what = what if len(what) < 120 else f"other {name} than the map"
            raise ValueError(f"{samples.path} has {what}; import the samples as those the map was trained with")
    run = None
    if os.path.lexists(out):
        if resume:
            run = resume_mapping(out, samples, codebook)
            if run is None:
                return open_mapping(out)
        elif not overwrite:
            raise StoreError(f"{out} exists already; choose another name, pass overwrite (--overwrite) or --resume")
    if run is None:
        run = create_mapping(out, samples, codebook, overwrite=overwrite)
    client.register_plugin(ResidentState())
    with Progress(samples.n, "samples", progress) as shown:

        def begin(members: list[str], before: Placing | None) -> Placing:
            return Placing(client, members, before, codebook, samples, run, shown)

        run_epochs(client, workers_of(client), begin, shown)
    return open_mapping(out)


class Placing(Epoch):
    """An epoch of searches, for `pipelines.resident.run_epochs`."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: Placing | None,
        codebook: Codebook,
        samples: Samples,
        out: MappingRun,
        shown: Progress,
    ):
        self.number: int = 0 if before is None else before.number + 1
        super().__init__(client, members, "som-map", f"{out.run_id[:8]}-{self.number}")
        self.codebook, self.samples, self.out, self.shown = codebook, samples, out, shown
        self.whole = out.rows_done()
        self._last = time.monotonic()

    def done(self) -> int:
        return int(self.whole.sum())

    def where(self) -> str:
        return f"{self.done():,} of {self.out.n:,} samples"

    def run(self) -> None:
        todo = [start for start in range(0, self.out.n, self.out.chunk) if not self.whole[start]]
        workers = range(min(len(self.members), len(todo)))
        self.wait([self.submit(_load, worker, self.codebook) for worker in workers])
        self.shown.start(self.done())
        self.shown.stage("searching")
        left = iter(todo)
        flying: dict[Future, tuple[int, int]] = {}

        def deal(worker: int) -> None:
            start = next(left, None)
            if start is not None:
                flying[self.submit(_place, worker, self.samples, self.out, start)] = worker, start

        for _ in range(IN_HAND):
            for worker in workers:
                deal(worker)
        try:
            while flying:
                landed, _ = wait_any(self.client, set(flying), self.members)
                for future in landed:
                    worker, start = flying.pop(future)
                    self.futures.remove(future)
                    self.whole[start : start + self.out.chunk] = True
                    self.shown.advance(min(self.out.chunk, self.out.n - start))
                    deal(worker)
                if time.monotonic() - self._last > RECORD_SECONDS:
                    self.out.record(self.whole)
                    self._last = time.monotonic()
        finally:
            self.out.record(self.whole)


def _load(epoch: str, codebook: Codebook) -> None:
    clear()
    keep(epoch, (codebook, array_library().asarray(codebook.units())))


def _place(epoch: str, samples: Samples, out: MappingRun, start: int) -> None:
    """Search for the units of a chunk of samples, by pieces that fit into memory, and write them."""
    facts, units = held(epoch)
    top = min(2, len(units))
    stop = min(start + out.chunk, out.n)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for piece in Shard(samples, start, stop, max(1, PIECE_BYTES // samples.row_bytes), False, array_library()).pieces():
        nearest, distances = best_matching_units(piece.values, units, facts.metric, top, samples.missing)
        found.append((to_host(nearest).reshape(-1, top), to_host(distances).reshape(-1, top)))
    out.write(start, *map(np.concatenate, zip(*found, strict=True)))
