"""Map samples to a trained codebook: write their two best matching units, and the distances to them, to a store.

Chunks of rows are dealt to the workers, which read, search and write. A worker that is done gets the next chunk. The
units of a sample depend on the sample and the codebook alone, so another worker that repeats the chunks of a lost
worker gets the same result.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np
from distributed import Client

from gpuops import best_matching_units
from pipelines.som.shard import PIECE_BYTES, Shard
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import SCHEMA, Mapping, MappingWriter, create_mapping, open_mapping, resume_mapping
from pipelines.stores.resuming import resumed
from pipelines.stores.samples import Samples, open_samples
from pipelines.workers.attempts import Run, clear, held, keep, workers_of
from pipelines.workers.clients import takes_client
from pipelines.workers.device_arrays import array_library, to_host
from pipelines.workers.progress import Progress
from pipelines.workers.row_chunks import RowsAttempt


@takes_client
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
    """Find the two best matching units of every sample, and write units and distances to the store `out`.

    Parameters
    ----------
    client : distributed.Client
    codebook : Codebook or path of a codebook store
    samples : Samples or path of a samples store
        The samples the map was trained with, or other samples with the same columns and dtype. If they are scaled in
        another way or not at all, their values are converted to the scaling that the map has recorded.
    out : path of the new mapping store
    overwrite, resume, progress : as for `pipelines.train_som`

    Returns
    -------
    Mapping
        The finished store, opened; `pipelines.mapping_quality` computes its errors.

    Raises
    ------
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        The samples do not match the map: they have other columns or another dtype.

    Examples
    --------
    >>> mapped = tilepath.map_samples(client, book, samples, "mapped.zarr")
    >>> mapped.units(0, 3).shape
    (3, 2)
    """
    codebook = open_codebook(codebook)
    samples = open_samples(samples)
    for name in ("columns", "dtype", "compensated"):
        of_map, of_samples = getattr(codebook, name), getattr(samples, name)
        if of_map != of_samples:
            what = f"{name} {of_samples}, the map {of_map}"
            what = what if len(what) < 120 else f"other {name} than the map"
            raise ValueError(
                f"{samples.path} has {what}; import the samples like the map's (like, --like {codebook.path})"
            )
    scaled = samples.in_scaling(codebook.scaling)
    again = partial(resume_mapping, samples=samples, codebook=codebook)
    begun = resumed(out, SCHEMA, [codebook.path, samples.path], again, resume=resume, overwrite=overwrite)
    if begun is not None and begun.finished:
        return open_mapping(out)
    writer = begun or create_mapping(out, samples, codebook, overwrite=overwrite)
    with Progress(samples.n, "samples", progress) as shown:
        if scaled is not samples:
            shown.note(
                f"{samples.path} has the scaling {samples.scaling.kind}, the map {codebook.scaling.kind}; "
                "samples are converted to the map's"
            )
        Run(client, workers_of(client), writer, shown).attempts(Placing, codebook, scaled)
    return open_mapping(out)


class Placing(RowsAttempt):
    """An attempt to search the chunks that are left."""

    out: MappingWriter
    kind, unit = "som-map", "samples"

    def __init__(self, run: Run, members: list[str], before: Placing | None, codebook: Codebook, samples: Samples):
        super().__init__(run, members, before)
        self.codebook, self.samples = codebook, samples

    def run(self) -> None:
        self.deal(
            lambda worker: self.submit(_load, worker, self.codebook),
            lambda worker, start: self.submit(_place, worker, self.samples, self.out, start),
        )


def _load(attempt: str, codebook: Codebook) -> None:
    clear()
    keep(attempt, (codebook, array_library().asarray(codebook.units())))


def _place(attempt: str, samples: Samples, out: MappingWriter, start: int) -> None:
    """Find the units of a chunk of samples, in pieces that fit into memory, and write them."""
    facts, units = held(attempt)
    top = min(2, len(units))
    stop = min(start + out.chunk, out.rows)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    weights = samples.weights(start, stop)
    for piece in Shard(samples, start, stop, max(1, PIECE_BYTES // samples.row_bytes), False, array_library()).pieces():
        nearest, distances = best_matching_units(piece.values, units, facts.metric, top, samples.missing)
        found.append((to_host(nearest).reshape(-1, top), to_host(distances).reshape(-1, top)))
    of_units, distances = map(np.concatenate, zip(*found, strict=True))
    out.write(start, of_units, distances, weights)
