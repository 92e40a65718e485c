"""What both ways of making rows on a GPU, by strips and by tiles, know of the tables of a cut graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops._arithmetic import arithmetic_of, notices_nonnegative
from gpuops._cuda import Program

if TYPE_CHECKING:
    from gpuops.boundary import ClosedParts

ONWARD_BYTES = 2**29  # of what lies between the two launches; more rows are done piece by piece
INDEX_BYTES = 4
PACK_WORDS, PACK_DEPTH = 32, 8  # threads of a block that packs


class DeviceTables:
    """What the kernels read of the tables of a `ClosedParts`, in panels; made once.

    Parameters
    ----------
    parts : ClosedParts
        Of CuPy.
    programs : by arithmetic
    """

    def __init__(self, parts: ClosedParts, programs: Mapping[str, Program]):
        self.parts, dtype = parts, parts.among.dtype
        tables = [table for table in (parts.to_boundary, parts.from_boundary, parts.among) if table.size]
        nonnegative = notices_nonnegative(dtype) and all(bool(table.min() >= 0) for table in tables)
        self.arithmetic, self.lanes, self.word = arithmetic_of(dtype, nonnegative)
        self.program = programs[self.arithmetic]
        (self.starts,) = on_device(parts.starts)
        self._last: tuple[np.ndarray | None, Any] = None, None

    @cached_property
    def all_targets(self) -> Any:
        """What `_targets` finds for all vertices."""
        return self._targets(np.arange(len(self.parts.part)))

    def laid_out(self, targets: np.ndarray | None) -> Any:
        """The layout of targets, None for all vertices; that of the last ones is kept for the next call."""
        if targets is None:
            return self.all_targets
        last, layout = self._last
        if last is None or not np.array_equal(last, targets):
            layout = self._targets(targets)
            self._last = targets.copy(), layout
        return layout

    def distances(self, out: Any, sources: np.ndarray | None, targets: np.ndarray | None) -> None:
        """Fill `out`, whose rows are contiguous; None stands for all vertices."""
        raise NotImplementedError

    def _targets(self, targets: np.ndarray) -> Any:
        """How these vertices are reached from the boundary of their parts."""
        raise NotImplementedError


def on_device(*arrays: np.ndarray) -> list[Any]:
    """Integers as int32 on the device, by one copy."""
    import cupy

    ends = np.cumsum([len(array) for array in arrays])
    together = cupy.asarray(np.concatenate(arrays).astype(np.int32, copy=False))
    return [together[end - len(array) : end] for array, end in zip(arrays, ends.tolist(), strict=True)]
