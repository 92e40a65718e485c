"""Map samples to a trained codebook: write their two best matching units, and the distances to them, to a store.

Chunks of rows are dealt to the workers, which read, search and write. A worker that is done gets the next chunk. The
units of a sample depend on the sample and the codebook alone, so another worker that repeats the chunks of a lost
worker gets the same result.
"""

from __future__ import annotations

import os

import numpy as np
from distributed import Client

from gpuops import best_matching_units
from pipelines.som.plan import piece_bytes, read_bytes
from pipelines.som.shard import AHEAD, Shard, usual_piece_rows
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import (
    Mapping,
    MappingWriter,
    create_mapping,
    open_mapping,
    rows_of_chunk,
)
from pipelines.stores.samples import Samples, open_samples
from pipelines.stores.schema import counted
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import Needs, WorkerFacts, measure_workers, on_devices, refuse_disk
from pipelines.workers.clients import takes_client
from pipelines.workers.device_arrays import array_library, to_host
from pipelines.workers.plans import run_plan, states_plan, stating
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.row_chunks import DealtRows, RowTasks

RESULT_COPIES = 3  # of the results of a chunk: the pieces, all pieces together, and compressed


@takes_client
@states_plan
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
    overwrite, resume, progress : as for `tilepath.train_som`

    Returns
    -------
    Mapping
        The finished store, opened; `tilepath.mapping_quality` computes its errors.

    Raises
    ------
    tilepath.DoesNotFitError
        Memory or disk is too small; nothing is written.
    StoreError
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
    begun = MappingWriter.resumed(
        out, samples, {"codebook": codebook}, inputs=[codebook.path], resume=resume, overwrite=overwrite
    )
    if begun is not None and begun.finished:
        return open_mapping(out)
    facts = measure_workers(client, None)
    chunk = rows_of_chunk(samples, codebook) if begun is None else begun.chunk
    needs = _needs(codebook, scaled, facts, chunk)
    text = f"{counted(samples.n, 'sample')}, {counted(codebook.grid.units, 'unit')}, {on_devices(facts)}: {needs}"
    plan = run_plan(text, "chunks of samples", needs)
    with stating(plan, out, begun) as (plan, place):
        needs.refuse_memory(f"chunks of {counted(chunk, 'sample')}", facts, "Free memory, or use fewer workers")
        refuse_disk(needs.disk, place, "map fewer samples")
    writer = begun or create_mapping(out, samples, codebook, overwrite=overwrite)
    with Progress(samples.n, "samples", progress) as bar:
        if scaled is not samples:
            bar.note(
                f"{samples.path} has the scaling {samples.scaling.kind}, the map {codebook.scaling.kind}; "
                "samples are converted to the map's"
            )
        bar.note(plan.text)
        tasks = RowTasks(
            "som-map", (_load, codebook), lambda rows: (_match, scaled, writer, rows.start), unit="samples"
        )
        Run(client, [fact.address for fact in facts], writer, bar).attempts(DealtRows, tasks)
    return open_mapping(out)


def _needs(codebook: Codebook, samples: Samples, facts: list[WorkerFacts], chunk: int) -> Needs:
    """Return the memory of the workers and the disk of the store, with chunks of that many samples."""
    busy = min(len(facts), -(-samples.n // chunk))
    top = min(2, codebook.grid.units)
    row = top * (4 + codebook.dtype.itemsize) + (0 if samples.largest_weight is None else samples.dtype.itemsize)
    counts = []
    for fact in facts[:busy]:
        piece = min(chunk, usual_piece_rows(samples.row_bytes, fact.gpu))
        pieces = min(AHEAD + 1, -(-chunk // piece))
        count = (pieces * piece + codebook.grid.units) * samples.row_bytes + RESULT_COPIES * chunk * row
        count += piece_bytes(samples, codebook.grid.units, piece, fact.gpu)
        count += read_bytes(chunk * samples.row_bytes, fact.gpu, min(AHEAD, pieces))
        counts.append(count)
    return Needs((*counts, *[0] * (len(facts) - busy)), disk=samples.n * row)


def _load(attempt: str, codebook: Codebook) -> None:
    clear_states()
    keep_state(attempt, (codebook, array_library().asarray(codebook.units())))


def _match(attempt: str, samples: Samples, out: MappingWriter, start: int) -> None:
    """Find the units of a chunk of samples, in pieces that fit into memory, and write them."""
    codebook, units = state_of(attempt)
    top = min(2, len(units))
    stop = min(start + out.chunk, out.rows)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    weights = samples.weights(start, stop)
    xp = array_library()
    for piece in Shard(samples, start, stop, usual_piece_rows(samples.row_bytes, xp is not np), False, xp).pieces():
        nearest, distances = best_matching_units(piece.values, units, codebook.metric, top, samples.missing)
        found.append((to_host(nearest).reshape(-1, top), to_host(distances).reshape(-1, top)))
    of_units, distances = map(np.concatenate, zip(*found, strict=True))
    out.write(start, of_units, distances, weights)
