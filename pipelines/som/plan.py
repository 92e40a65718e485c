"""Plan the training of a map: which worker has which samples, whether samples stay in memory, and the bytes needed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from pipelines.som.shard import AHEAD, PIECE_BYTES, usual_piece_rows
from pipelines.som.stage_graph import SLOTS
from pipelines.stores.samples import Samples
from pipelines.stores.schema import counted
from pipelines.workers.capacity import Needs, WorkerFacts, on_devices
from pipelines.workers.plans import Plan, refusing, run_plan

# Work of an epoch (samples x units x dimensions) that one worker does in the time of an exchange with other workers.
FEW = 1 << 27
# Most bytes that a reader takes on a CPU besides values: Zarr reads ten chunks at a time, each of 4 MiB as stored and
# as decompressed. The allocators of its threads keep freed memory, on a busy machine as much as another reader takes.
# One reader took between 70 and 206 MiB in all, two readers between 107 and 266 MiB.
READ_BYTES = 112 << 20
SEARCHED_BYTES = 2 << 30  # most bytes of features and least scores of a search on a GPU (`gpuops.som.bmu_cuda`)
SCORELESS = 1 << 10, 78  # most units and dimensions of the search on a GPU that stores no scores (`small_map_cuda`)
TOGETHER_BYTES, MOST_TOGETHER = 1 << 20, 64  # most bytes, and most codebooks, in a chunk of the store


def are_few(samples: Samples, units: int) -> bool:
    """Return whether one worker should have all samples."""
    return samples.n * units * samples.d <= FEW and samples.n * samples.row_bytes <= PIECE_BYTES


def epochs_together(samples: Samples, units: int) -> int:
    """Return how many codebooks share a chunk of the store and are committed together.

    If there are several, the codebooks have at most `TOGETHER_BYTES` bytes, and the work of their epochs is at most
    `FEW`.
    """
    work, codebook = samples.n * units * samples.d, units * samples.d * samples.dtype.itemsize
    return max(min(FEW // work, TOGETHER_BYTES // codebook, MOST_TOGETHER), 1)


def piece_bytes(samples: Samples, units: int, piece: int, gpu: bool, searches: int = 1) -> int:
    """Return the bytes that a piece of `piece` samples takes besides its values.

    Every sample has two units and distances, and the terms of errors in float64. On a GPU, each of `searches` searches
    also has features of every sample, its least scores of tiles of 64 units, and its place in the order of tiles.
    """
    evaluated = piece * (2 * (4 + samples.dtype.itemsize) + 40 + (24 if samples.largest_weight is not None else 0))
    if not gpu:
        return evaluated
    features = 16 * -(-(samples.d * (1 + samples.missing) + 2) // 16)
    return evaluated + searches * (44 * piece + min(SEARCHED_BYTES, 4 * piece * (features + -(-units // 64))))


def read_bytes(values: int, gpu: bool, readers: int) -> int:
    """Return the bytes of the host for reading, given the bytes of the values that are read at a time; 0 for a GPU."""
    return 0 if gpu else min((readers + 1) * READ_BYTES, 4 * values)


@dataclass(frozen=True)
class SomPlan:
    """The shares of the samples: worker w has the rows from `bounds[w]` to `bounds[w + 1]`, `piece_rows` at a time.

    `needs` is the memory of each worker, and the disk of the store; `text` is a line for the user. `online` says if
    the first worker learns from one sample after another.
    """

    bounds: tuple[int, ...]
    piece_rows: int
    resident: bool
    needs: Needs
    text: str
    online: bool = False

    @property
    def alone(self) -> bool:
        """Whether the first worker has all samples."""
        return self.bounds[1] == self.bounds[-1]

    @property
    def stated(self) -> Plan:
        """The plan that the run states."""
        return run_plan(self.text, "online" if self.online else "batch", self.needs)


def make_som_plan(
    samples: Samples,
    units: int,
    facts: list[WorkerFacts],
    *,
    disk_bytes: int,
    resident: bool | None = None,
    piece_rows: int | None = None,
    metric: str = "euclidean",
    few: bool = False,
    online: bool = False,
) -> SomPlan:
    """Deal the samples to the workers; with `resident` None, they stay in memory if they fit.

    With `few` or `online` the first worker gets all samples; with `online` as one piece, which stays in memory.

    Raises
    ------
    DoesNotFitError
        Memory is too small for samples that are resident, or streamed, as asked for; with `resident` None, for
        streamed samples.
    """
    bounds = tuple(samples.n * part // len(facts) for part in range(len(facts) + 1))  # parts of equal size
    if few or online:
        bounds = (0, *[samples.n] * len(facts))
    if online:
        piece_rows, resident = samples.n, True
    rows = piece_rows or usual_piece_rows(samples.row_bytes, any(fact.gpu for fact in facts))
    # The codebook; sums and counts in int64, in float64, and of two workers to be added; the slots of the ring, and the
    # slots pulled from other workers.
    itemsize, of_sums = samples.dtype.itemsize, samples.d + (samples.d if samples.missing else 1)
    rings = 1 if bounds[1] == samples.n else 2 * SLOTS
    of_units = units * (samples.d * (2 * itemsize + 4 * 8) + 5 * 8 * (of_sums - samples.d) + rings * 8 * of_sums)
    # Sums of samples may take a part of the memory of the last search, so that the next search takes other memory.
    scoreless = metric == "euclidean" and not samples.missing and units <= SCORELESS[0] and samples.d <= SCORELESS[1]
    searches = 1 if scoreless else 2

    def needs(kept: bool) -> Needs:
        counts = []
        for fact, (first, last) in zip(facts, pairwise(bounds), strict=True):
            share, piece = (last - first) * samples.row_bytes, min(rows, last - first)
            readers = 1 if kept else AHEAD
            read = min(share, readers * piece * samples.row_bytes)
            held = share if kept else min(share, read + piece * samples.row_bytes)
            evaluated = piece_bytes(samples, units, piece, fact.gpu, searches)
            counts.append(held + evaluated + read_bytes(read, fact.gpu, readers) + of_units)
        return Needs(tuple(counts), disk=disk_bytes)

    if resident is None:
        resident = needs(True).fits(facts)
    taken = needs(resident)
    where = "samples stay in memory" if resident else "samples are read again in each epoch"
    of = f"{samples.n:,} x {samples.d} {samples.dtype} samples, {counted(units, 'unit')}, {on_devices(facts)}"
    plan = SomPlan(bounds, rows, resident, taken, f"{of}: {where}; {taken}", online)
    cure = "Use a smaller map, or smaller pieces (piece_rows, --piece-rows)"
    if online:
        cure = "Train in batches: leave out online (--online)"
    elif resident:
        cure = "Let them be streamed (resident=False, --streamed)"
    with refusing(plan.stated):
        plan.needs.refuse_memory(f"{samples.n:,} samples and {units:,} units", facts, cure)
    return plan
