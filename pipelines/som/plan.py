"""Plan the training of a map: which worker has which samples, whether samples stay in memory, and the bytes needed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from pipelines.som.shard import AHEAD, PIECE_BYTES
from pipelines.som.stage_graph import SLOTS
from pipelines.stores.samples import Samples
from pipelines.stores.schema import counted
from pipelines.workers.capacity import Needs, WorkerFacts, on_devices
from pipelines.workers.plans import Plan, refusing, run_plan

# Work of an epoch (samples x units x dimensions) that one worker does in the time of an exchange with other workers.
FEW = 1 << 27
# On a CPU, bytes for each sample of a piece besides its values: units, distances, and the terms of errors in float64.
EVALUATED_BYTES = 64
READ_BYTES = 64 << 20  # most bytes of chunks that Zarr has decompressed and not yet copied, on a CPU
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


@dataclass(frozen=True)
class SomPlan:
    """The shares of the samples: worker w has the rows from `bounds[w]` to `bounds[w + 1]`, `piece_rows` at a time.

    `needs` is the memory of each worker, and the disk of the store. `online` says whether the first worker learns from
    one sample after another.
    """

    bounds: tuple[int, ...]
    piece_rows: int
    resident: bool
    needs: Needs
    online: bool = False

    @property
    def alone(self) -> bool:
        """Whether the first worker has all samples."""
        return self.bounds[1] == self.bounds[-1]

    def describe(self, samples: Samples, units: int, facts: list[WorkerFacts]) -> str:
        """Return a line for the user: the samples, the units, the workers, and the memory and disk they need."""
        where = "samples stay in memory" if self.resident else "samples are read again in each epoch"
        return (
            f"{samples.n:,} x {samples.d} {samples.dtype} samples, {counted(units, 'unit')}, "
            f"{on_devices(facts)}: {where}; {self.needs}"
        )

    def stated(self, samples: Samples, units: int, facts: list[WorkerFacts], kept: str = "") -> Plan:
        """Return the plan that the run states; the text ends with the clause `kept`."""
        text = self.describe(samples, units, facts) + kept
        return run_plan(text, "online" if self.online else "batch", self.needs)


def make_som_plan(
    samples: Samples,
    units: int,
    facts: list[WorkerFacts],
    *,
    disk_bytes: int,
    resident: bool | None = None,
    piece_rows: int | None = None,
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
    rows = piece_rows or max(1, PIECE_BYTES // samples.row_bytes)
    # The codebook; sums and counts in int64, in float64, and of two workers to be added; the slots of the ring, and the
    # slots pulled from other workers.
    itemsize, of_sums = samples.dtype.itemsize, samples.d + (samples.d if samples.missing else 1)
    rings = 1 if bounds[1] == samples.n else 2 * SLOTS
    of_units = units * (samples.d * (2 * itemsize + 4 * 8) + 5 * 8 * (of_sums - samples.d) + rings * 8 * of_sums)

    def needs(kept: bool) -> Needs:
        counts = []
        for fact, (first, last) in zip(facts, pairwise(bounds), strict=True):
            piece = min(rows, last - first)
            # A piece also needs its units and distances and, on a GPU, a copy in the layout of the search.
            held = (last - first) * samples.row_bytes if kept else (AHEAD + 1) * piece * samples.row_bytes
            evaluated = piece * (16 + 2 * itemsize * 2)
            if not fact.gpu:
                evaluated += piece * EVALUATED_BYTES + min(READ_BYTES, 3 * piece * samples.row_bytes)
            counts.append(held + evaluated + of_units)
        return Needs(tuple(counts), disk=disk_bytes)

    if resident is None:
        resident = needs(True).fits(facts)
    plan = SomPlan(bounds, rows, resident, needs(resident), online)
    cure = "Use a smaller map, or smaller pieces (piece_rows, --piece-rows)"
    if online:
        cure = "Train in batches: leave out online (--online)"
    elif resident:
        cure = "Let them be streamed (resident=False, --streamed)"
    with refusing(plan.stated(samples, units, facts)):
        plan.needs.refuse_memory(f"{samples.n:,} samples and {units:,} units", facts, cure)
    return plan
