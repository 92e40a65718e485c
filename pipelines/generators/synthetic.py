"""The base class of all generated graphs: edges have numbers, and an edge is a function of the seed and its number.

A graph is a description, a frozen dataclass. `arcs(start, stop)` generates the edges with these numbers:

1. Draw the two ends; the kinds of graphs differ in how. Some numbers may have no edge.
2. Draw the weight: a float from (0, 1], an integer from 1 to 255, or a length. Or there are no weights.
3. Shift the weight w, if requested, to w + p(u) - p(v), with a potential p drawn for every vertex. Many weights are
   then negative. Around a cycle the potentials cancel (Johnson), so no cycle becomes negative. Drawn and shifted floats
   are multiples of 2^-20 below 16, so float32 holds them exactly and rounding cannot make a cycle negative.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, no_type_check

import numpy as np
from numba import njit

from gpuops.options import number, whole
from gpuops.recompiling import recompiled_with_imports
from pipelines.generators.counter_random import POTENTIAL, WEIGHT, below, draw

Piece = tuple[np.ndarray, np.ndarray, np.ndarray]

HEAVIEST = 255  # largest integer weight
SHIFTED_BITS = 20  # bits after the binary point of float weights that will be shifted
LARGEST_SHIFT = 8.0  # largest `shift`, in units of the heaviest weight

_WORD = np.uint64(32)
_BLOCK = np.uint64(0)


@dataclass(frozen=True, kw_only=True)
class SyntheticGraph:
    """The description of a graph to generate; the kinds are subclasses.

    Attributes
    ----------
    seed : 0 to 2^64 - 1
    directed : whether edges are arcs; with False, an edge leads in both directions, with the same weight before a shift
    weights : "uniform", floats from (0, 1]; "integers", 1 to 255; "lengths", Euclidean (grid and road); "none", the
        graph is unweighted (Euler graphs, by default)
    dtype : dtype of the weights: float32 (default) or float64; for integers also int32 (their default) and int64. Where
        an unweighted graph needs weights, they are 1, int32
    shift : potentials are drawn from 0 to `shift` times the heaviest weight; with 0, weights are not shifted
    n : number of vertices
    ids : edges have the numbers 0 .. ids - 1
    """

    seed: int = 0
    directed: bool = False
    weights: str = "uniform"
    dtype: Any = None
    shift: float = 0.0

    kinds_of_weights: ClassVar[tuple[str, ...]] = ("uniform", "integers")
    every_arc: ClassVar[bool] = False  # whether loops and parallel arcs must be kept, as in Euler graphs

    def __post_init__(self) -> None:
        whole("seed", self.seed, 0, 2**64 - 1)
        number("shift", self.shift, 0, LARGEST_SHIFT)
        if self.weights not in self.kinds_of_weights:
            raise ValueError(
                f"{type(self).__name__} has no weights {self.weights!r}; choose {' or '.join(self.kinds_of_weights)}"
            )
        if self.shift and self.weights in ("lengths", "none"):
            fault = (
                "lengths cannot be shifted exactly" if self.weights == "lengths" else "there are no weights to shift"
            )
            raise ValueError(f"{fault}; choose uniform or integers, or leave the shift out")
        integers = ("int32", "int64", "float32", "float64")
        dtypes = {"integers": integers, "none": ("int32",)}.get(self.weights, ("float32", "float64"))
        dtype = np.dtype(dtypes[0] if self.dtype is None else self.dtype)
        if dtype not in dtypes:
            if self.weights == "none":
                raise ValueError(
                    f"there are no weights to be {dtype}; choose uniform or integers, or leave the dtype out"
                )
            raise ValueError(f"{self.weights} weights must be {', '.join(dtypes[:-1])} or {dtypes[-1]}, not {dtype}")
        object.__setattr__(self, "dtype", str(dtype))

    if TYPE_CHECKING:  # fields of some kinds, but properties of other kinds; a dataclass would confuse the two

        @property
        def n(self) -> int: ...

        @property
        def ids(self) -> int: ...

    def __str__(self) -> str:
        """Return a Python expression of the graph, without fields that have their default value."""
        given = [item for item in fields(self) if getattr(self, item.name) != item.default]
        given.sort(key=lambda item: item.default is not MISSING)
        return f"{type(self).__name__}({', '.join(f'{item.name}={getattr(self, item.name)!r}' for item in given)})"

    @property
    def held_bytes(self) -> int:
        """The memory in bytes that a graph holds if its edges depend on each other, and must be made all at once."""
        return 0

    @property
    def symmetric(self) -> bool:
        """Whether `arcs` returns each edge once, for both directions."""
        return not self.directed and not self.shift

    def arcs(self, start: int = 0, stop: int | None = None) -> Piece:
        """Return the edges numbered `start` to `stop` (excluded; by default all to the end), in order.

        Returns
        -------
        tails, heads : int64
        weights : `dtype`
            Three arrays of equal length, at most twice as long as the range of numbers.
        """
        stop = self.ids if stop is None else stop
        if not 0 <= start <= stop <= self.ids:
            raise ValueError(f"edges {start} to {stop} were asked for; {type(self).__name__} has 0 to {self.ids}")
        ids, tails, heads = self._ends(start, stop)
        if self.shift and not self.directed:
            ids, tails, heads = np.repeat(ids, 2), *both_ways(tails, heads)
        weights = self._draw_weights(ids, tails, heads)
        if self.shift:
            top = HEAVIEST if self.weights == "integers" else 1 << SHIFTED_BITS
            unit = 1.0 if self.weights == "integers" else 2.0**-SHIFTED_BITS
            _shift(np.uint64(self.seed), np.uint64(round(self.shift * top)), unit, tails, heads, weights)
        return tails, heads, weights

    def _ends(self, start: int, stop: int) -> Piece:
        """Return numbers, tails and heads of the edges `start` to `stop` (excluded), int64."""
        raise NotImplementedError

    def _draw_weights(self, ids: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
        """Return the weights before they are shifted."""
        if self.weights == "none":
            return np.ones(ids.size, self.dtype)
        weights = np.empty(ids.size, self.dtype)
        bits = SHIFTED_BITS if self.shift else np.finfo(self.dtype).nmant + 1 if weights.dtype.kind == "f" else 0
        _fill(np.uint64(self.seed), ids, self.weights == "integers", bits, weights)
        return weights


def both_ways(tails: np.ndarray, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tails and heads of both arcs of every edge; the two arcs of an edge are neighbours."""
    return np.stack([tails, heads], axis=1).ravel(), np.stack([heads, tails], axis=1).ravel()


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _fill(seed, ids, integers, bits, weights):
    """Draw the weight of every id: an integer from 1 to 255, or a multiple of 2^-bits from (0, 1]."""
    drop, unit = np.uint64(64 - bits), 2.0**-bits
    for i in range(ids.size):
        high, low, _, _ = draw(seed, WEIGHT, np.uint64(ids[i]), _BLOCK)
        if integers:
            weights[i] = np.int64(below(np.uint64(HEAVIEST), high, low)) + 1
        else:
            weights[i] = (np.float64((high << _WORD | low) >> drop) + 1.0) * unit


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _shift(seed, steps, unit, tails, heads, weights):
    """Add p(tail) - p(head) to every weight; p is a random multiple of `unit`, below `steps` units."""
    for i in range(tails.size):
        out, out_low, _, _ = draw(seed, POTENTIAL, np.uint64(tails[i]), _BLOCK)
        into, into_low, _, _ = draw(seed, POTENTIAL, np.uint64(heads[i]), _BLOCK)
        difference = np.int64(below(steps, out, out_low)) - np.int64(below(steps, into, into_low))
        weights[i] += difference * unit
