"""Shortest paths on a GPU: the CUDA half of `gpuops.sssp`. Each kernel file has a module of its name.

search.cu searches from one set of sources, tree.cu finds predecessors, batched.cu runs up to 32 separate searches, and
cycle.cu looks for a negative cycle. `launch_cuda` and `memory_cuda` have the parts that all launches share.

**Why the result does not depend on the order of relaxations.** A relaxation takes the minimum of a distance and a
rounded sum, and the rounded sum never falls when the distance of the tail rises. So every stored distance is the
rounded length of some walk, added up from the start of the walk. When no arc improves a distance, induction along a
walk shows that no distance exceeds the rounded length of any walk. So every distance is the least rounded length of a
walk, whatever the order: thousands of threads may race, and the result has the same bits as Dijkstra's algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuops.sssp.batched_cuda import batch as batch
from gpuops.sssp.search_cuda import improve as improve
from gpuops.sssp.search_cuda import search as search
from gpuops.sssp.tree_cuda import tree as tree
from gpuops.sssp.tree_cuda import tree_from_sources as tree_from_sources


def shares_reads(graph: Any) -> bool:
    """Return whether `batch` can search this graph; otherwise searches run one by one."""
    return not graph.negative


def one_by_one(search: Callable[[int], Any], count: int) -> None:
    """Call `search` with every number below `count`: a search takes the whole GPU."""
    for number in range(count):
        search(number)
