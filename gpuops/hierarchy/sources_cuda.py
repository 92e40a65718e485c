"""Sort sources by brick on a GPU, and compute their distances to the upper tree (sweeps.cu)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import multiprocessors
from gpuops.hierarchy.columns_cuda import count_doors
from gpuops.hierarchy.memory_cuda import SOURCES, batch_bytes, source_bytes
from gpuops.hierarchy.tree_cuda import BRICK_THREADS, CLIMBING, NULL, HierarchyOnDevice

# Most sources of a batch, so that no grid has more than 65,535 blocks in its second dimension.
_MOST_SOURCES = 2**15
# Lanes of a warp.
GROUP = 32
# Most sources that climb to the root each in a block of their own.
_FEW = 512
# Most blocks of `begin`.
_BEGIN = 1024
# Threads of `climb` that a multiprocessor has registers for.
_THREADS = 1024


class Sources(NamedTuple):
    """Some sources, on the device.

    Attributes
    ----------
    size : int
    vertices : array, or NULL
        The sources. NULL if `vertex` is the only one.
    vertex : int32
    rows : array, or NULL
        The row of the result for each source. NULL if rows are in the order of sources.
    first_start : array, or NULL
        The number of the first start of each source. NULL if each source is its own start.
    starts : int
        Number of starts.
    """

    size: int
    vertices: Any
    vertex: np.int32
    rows: Any
    first_start: Any
    starts: int


class Departed(NamedTuple):
    """Sources and their distances.

    Attributes
    ----------
    sources : Sources
    above : (2, upper, stride) array
        The distances from the sources to the upper tree, and those of the climbs, which are no longer needed. The
        stride is a multiple of 32 sources.
    inner : (starts and more, width) array
        The distances from each start to its brick by paths that stay there, before rows that are no longer needed.
    """

    sources: Sources
    above: Any
    inner: Any


def few_sources(tree: HierarchyOnDevice, origins: Any) -> Sources:
    """Return a few sources, NumPy or CuPy, in their order."""
    count = len(origins)
    alone = count == 1 and isinstance(origins, np.ndarray)
    if alone and not tree.has_closed:
        return Sources(1, NULL, np.int32(origins[0]), NULL, NULL, 1)
    vertices = int32_on_device(origins)
    if not tree.has_closed:
        return Sources(count, vertices, np.int32(0), NULL, NULL, count)
    return _with_starts(vertices, NULL, count_doors(tree, vertices, entering=False))


def batches(tree: HierarchyOnDevice, vertices: Any, rows: Any, kept: int) -> Iterator[Sources]:
    """Divide sources into batches.

    `vertices` are sorted by brick, so that neighbours are near each other in the tree. `kept` is the number of
    distances that are kept for each source, in addition to those of `source_bytes`.
    """
    shared = tree.structure
    of_source = source_bytes(shared.fronts, shared.upper, shared.width, tree.dtype)
    most, of_source = batch_bytes(of_source), of_source + tree.dtype.itemsize * kept
    if not tree.has_closed:
        step = max(1, min(most // of_source, _MOST_SOURCES))
        if step > SOURCES:
            step -= step % SOURCES
        for first in range(0, len(vertices), step):
            some = vertices[first : first + step]
            yield Sources(len(some), some, np.int32(0), rows[first : first + step], NULL, len(some))
        return
    starts = count_doors(tree, vertices, entering=False)
    ends = np.cumsum(of_source + np.maximum(starts - 1, 0) * tree.dtype.itemsize * shared.width)
    first = 0
    while first < len(vertices):
        before = int(ends[first - 1]) if first else 0
        count = max(1, min(int(np.searchsorted(ends, before + most, "right")) - first, _MOST_SOURCES))
        if SOURCES < count < len(vertices) - first:
            count -= count % SOURCES
        batch = slice(first, first + count)
        yield _with_starts(vertices[batch], rows[batch], starts[batch])
        first += count


def int32_on_device(vertices: Any) -> Any:
    """Return vertices, NumPy or CuPy, as an int32 array on the device."""
    import cupy

    return cupy.asarray(vertices.astype(np.int32)) if isinstance(vertices, np.ndarray) else vertices


def _with_starts(vertices: Any, rows: Any, starts: np.ndarray) -> Sources:
    import cupy

    ends = np.cumsum(starts)
    first = cupy.asarray((ends - starts).astype(np.int32))
    return Sources(len(starts), vertices, np.int32(0), rows, first, int(ends[-1]))


def depart(tree: HierarchyOnDevice, sources: Sources) -> Departed:
    """Compute the distances from sources to the upper tree."""
    import cupy

    shared, sweeps, count, few = tree.structure, tree.sweeps, sources.size, sources.size <= _FEW
    together = GROUP if few else SOURCES
    stride = -(-count // together) * together
    above = cupy.empty((2, max(1, shared.upper), stride), tree.dtype)
    inner = cupy.empty((sources.starts + (1 + few) * count, shared.width), tree.dtype)
    rows = above, np.int32(stride)
    starting = tree.tree, sources.vertices, sources.vertex, sources.first_start, inner, np.int32(sources.starts), *rows
    sweeps.launch("begin", min(_BEGIN, -(-above.size // sweeps.threads)), (tree.tree, *rows))
    if few:
        sweeps.launch("alone", (count, 2), starting, threads=2 * sweeps.threads)
    else:
        blocks = -(-count // CLIMBING)
        fit = _THREADS * multiprocessors(above.device.id) // blocks
        threads = next((threads for threads in (1024, 512, 256) if threads <= fit), BRICK_THREADS)
        sweeps.launch("home", count, starting, threads=BRICK_THREADS)
        sweeps.launch("climb", blocks, (tree.tree, sources.vertices, *rows, np.int32(count)), threads=threads)
    warps = shared.chunks * -(-count // together)
    sweeps.launch_cooperative(
        "upper", (tree.tree, *rows, np.int32(count), np.int32(few)), most=max(1, -(-warps * GROUP // sweeps.threads))
    )
    return Departed(sources, above, inner)
