"""Destinations grouped by brick, and everything about them that is the same for all origins.

An open destination is a column of its brick, or of the upper tree. A closed destination is a column wherever an arc
into the destination begins: in each such brick, and in the upper tree. The distance to a closed destination is the
minimum over its columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.memory import TABLES


@dataclass(frozen=True, eq=False)
class Destinations:
    """Destinations as c columns in G groups, in W windows of successive groups.

    A group has the columns of one brick. The last group may have the columns of the upper tree.

    Attributes
    ----------
    vertices : (l,) integers
        The destinations. The attributes below name a destination by its position here.
    missing : integers
        Destinations without a column: closed vertices that no arc from an open vertex leads to.
    group_brick, group_starts : (G,) int32, (G + 1,) int64
        The brick of each group, and its first column.
    window_starts : (W + 1,) int64
        The first group of each window. Only the tables of one window are in memory at a time.
    column : (c,) int32
        For each window, its columns, counted from the first column of the window, by ascending destination. Columns
        come after all others if an earlier column, in any window, has the same destination.
    window_runs, run_starts, run_targets, run_again : (W + 1,) int64, (R + 1,) int64, (R,) int32, (R,) bool
        Runs of entries of `column` with successive destinations: the first run of each window, where each run begins,
        its first destination, and whether earlier columns have the same destinations.
    arc_starts, arc_rows, arc_lengths : (c + 1,) int64, (a,) int32, (a,) numbers
        The arcs of each column in CSR. The distance to a column is the minimum, over its arcs, of the distance to a row
        in the table of the brick plus a length.
    needed : (N,) bool
        Whether a node is on the path to the root from a node with a column.
    table_starts : (G + 1,) int64
        Where the table of each group begins. It has, by rows, the distances from the front of the brick to the columns.
    """

    vertices: np.ndarray
    missing: np.ndarray
    group_brick: np.ndarray
    group_starts: np.ndarray
    window_starts: np.ndarray
    column: np.ndarray
    window_runs: np.ndarray
    run_starts: np.ndarray
    run_targets: np.ndarray
    run_again: np.ndarray
    arc_starts: np.ndarray
    arc_rows: np.ndarray
    arc_lengths: np.ndarray
    needed: np.ndarray
    table_starts: np.ndarray

    @classmethod
    def of(cls, hierarchy: Hierarchy, vertices: np.ndarray) -> Destinations:
        """Group the destinations `vertices` by brick."""
        structure, bricks = hierarchy.structure, hierarchy.structure.bricks
        places = structure.place[vertices]
        inside, outside = np.flatnonzero(places < structure.open), np.flatnonzero(places >= structure.open)
        owners, tails, lengths = hierarchy.closed.entering.rows(places[outside] - structure.open)
        ends = np.concatenate([places[inside], tails])
        targets = np.concatenate([inside, outside[owners]])
        lengths = np.concatenate([np.zeros(len(inside), lengths.dtype), lengths])
        nodes = structure.node_of[ends]
        brick, rows = bricks.of_node[nodes], bricks.node_row[nodes] + ends - structure.starts[nodes]
        order = np.argsort(brick, kind="stable") if len(outside) == 0 else np.lexsort((targets, brick))
        brick, targets = brick[order], targets[order]
        first = np.flatnonzero(_differs(brick) | _differs(targets))  # the first arc of each column
        column_brick, target = brick[first], targets[first]
        begins = np.flatnonzero(_differs(column_brick))
        group_brick, group_starts = column_brick[begins], np.append(begins, len(target))
        depths = np.append(np.diff(bricks.front_starts), 0)[group_brick]
        table_starts = np.concatenate([[0], np.cumsum(depths * np.diff(group_starts))])
        window_starts = _cut(table_starts, TABLES)
        window = np.repeat(np.arange(len(window_starts) - 1), np.diff(group_starts[window_starts]))
        again = np.ones(len(target), bool)
        again[np.unique(target, return_index=True)[1] if len(outside) else slice(None)] = False
        by_target = _sorted(target, 2 * window + again, len(outside) == 0)
        target, again = target[by_target], again[by_target]
        runs = np.flatnonzero(_differs(target - np.arange(len(target))) | _differs(again) | _differs(window))
        return cls(
            vertices=vertices,
            missing=np.setdiff1d(outside, outside[owners]),
            group_brick=group_brick,
            group_starts=group_starts,
            window_starts=window_starts,
            column=(by_target - group_starts[window_starts][window]).astype(np.int32),
            window_runs=np.searchsorted(window[runs], np.arange(len(window_starts))),
            run_starts=np.append(runs, len(target)),
            run_targets=target[runs].astype(np.int32),
            run_again=again[runs],
            arc_starts=np.append(first, len(targets)),
            arc_rows=rows[order].astype(np.int32),
            arc_lengths=lengths[order],
            needed=_needed(nodes, structure.parent),
            table_starts=table_starts,
        )


def _sorted(target: np.ndarray, key: np.ndarray, permuted: bool) -> np.ndarray:
    """Return the order by key, then by target; `permuted` says that the targets are 0 to l - 1, in any order.

    As there are few keys, a radix sort takes little time, and no sort of the targets is needed if they are permuted.
    """
    if not permuted:
        return np.lexsort((target, key))
    by_target = np.empty(len(target), np.int64)
    by_target[target] = np.arange(len(target))
    narrow = np.uint16 if key.max(initial=0) < 2**16 else key.dtype
    return by_target[np.argsort(key[by_target].astype(narrow), kind="stable")]


def _differs(values: np.ndarray) -> np.ndarray:
    """Return whether each value differs from the value before it."""
    result = np.ones(len(values), bool)
    result[1:] = values[1:] != values[:-1]
    return result


def _needed(nodes: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return whether each node is one of `nodes` or their ancestors."""
    needed = np.zeros(len(parent), bool)
    while len(nodes):
        needed[nodes] = True
        nodes = parent[nodes]
        nodes = nodes[(nodes >= 0) & ~needed[nodes]]
    return needed


def _cut(starts: np.ndarray, most: int) -> np.ndarray:
    """Cut successive ranges into runs of at most `most` elements; a longer range is a run alone.

    `starts` has the starts of the ranges and the end of the last range.
    """
    cuts = [0]
    while cuts[-1] < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(last, cuts[-1] + 1))
    return np.array(cuts)
