"""The distribution of distances: how many pairs are how far apart, without a matrix of distances.

Distances are computed for a block of origins at a time, by a hierarchy or by searches, and only counted. Bin k has the
distances from k times the width of a bin up to, but without, k + 1 times the width.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuops.numbers import outside_infinity
from pipelines.files.tables import number_field
from pipelines.od_tables.blocks import DistancesTo
from pipelines.od_tables.given import Given, as_frame, given_or_everywhere, warn_of
from pipelines.od_tables.plan import rows_in_block
from pipelines.od_tables.units import Measured, measured
from pipelines.places.networks import NetworkLike, open_network
from pipelines.stores.graph import Graph
from pipelines.workers.interruption import boundaries, stop_if_asked
from pipelines.workers.progress import Progress

if TYPE_CHECKING:
    import pandas

BINS, MOST_BINS = 20, 1 << 20  # about how many bins there are if no width is given, and most bins
PROBES = 32  # origins whose distances determine the width


def distance_histogram(
    network: NetworkLike,
    origins: Any = None,
    destinations: Any = None,
    *,
    width: float | str | None = None,
    unit: str | None = None,
    snap_limit: float | str | None = None,
    crs: Any = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> pandas.DataFrame:
    """Return how many pairs of an origin and a destination are how far apart; memory never holds all pairs.

    Parameters
    ----------
    network : HierarchyStore or Graph, or path of such a store
        A graph is searched from each origin, in this process; its weights must not be negative.
    origins, destinations : optional
        As for `tilepath.od`; by default every vertex, without the pairs of a vertex with itself. With some random
        origins, such as ``tilepath.positions(rng.choice(n, 1000))``, the histogram is an estimate.
    width : float or str, optional
        The width of a bin in the unit of the result, or a text with another unit, such as "5min"; by default 1, 2 or 5
        times a power of ten that gives about twenty bins.
    unit, snap_limit, crs, graph, progress : as for `tilepath.od`

    Returns
    -------
    pandas.DataFrame
        A row for each bin, with the columns `begin` and `end` (excluded), and `pairs`. The last row has the pairs that
        no path joins, if there are any: from +inf to +inf. ``frame.attrs`` has the unit and the attribution.

    Examples
    --------
    >>> tilepath.distance_histogram(hierarchy, width=250)
       begin     end  pairs
    0    0.0   250.0    264
    1  250.0   500.0    422
    2  500.0   750.0    180
    3  750.0  1000.0      4
    """
    opened = open_network(network, graph, crs, snap_limit)
    given = given_or_everywhere(opened, origins, destinations, every_destination=True)
    warn_of(given)
    value = measured(opened.graph.unit, unit)
    return as_frame(histogram_table(given, value, width, progress=progress), given, value.unit)


def histogram_table(
    given: Given, value: Measured, width: float | str | None, *, progress: bool | None = None
) -> pa.Table:
    """Return the table of `distance_histogram`."""
    width = value.limit(width, "width (--width)")
    if width is not None and not 0 < width < math.inf:
        raise ValueError(f"width (--width) is {width:g}; give a width above 0")
    begins, ends = (each.vertices for each in given.points)
    rows_of, everywhere = DistancesTo(given.source, ends), given.points[1].everywhere
    step, unreachable = rows_in_block(len(begins), given.graph.n, len(begins)), 0
    counts = np.zeros(0, np.int64)
    if width is None:
        found = rows_of.rows(begins[:: max(1, len(begins) // PROBES)][:PROBES])
        known = found[found != outside_infinity(found.dtype)]
        width = round_width(float(value.of(known).max(initial=0)) / BINS)
    with Progress(len(begins) * len(ends), "pairs", progress) as bar, boundaries():
        bar.start(0)
        bar.stage("distances")
        for start in range(0, len(begins), step):
            found = rows_of.rows(begins[start : start + step])
            joined = found != outside_infinity(found.dtype)
            unreachable += int(joined.size - joined.sum())
            if everywhere:  # no pair has the same vertex twice
                joined[np.arange(len(found)), begins[start : start + step]] = False
            more = counted_in_bins(value.of(found[joined]).astype(np.float64), width)
            longer, shorter = (more, counts) if len(more) > len(counts) else (counts, more)
            longer[: len(shorter)] += shorter
            counts = longer
            bar.advance(found.size)
            stop_if_asked()
    edges = np.arange(len(counts) + 1) * width
    columns = {"begin": edges[:-1], "end": edges[1:], "pairs": counts}
    if unreachable:
        columns = {name: np.append(each, np.inf) for name, each in columns.items()} | {
            "pairs": np.append(counts, unreachable)
        }
    fields = [*(number_field(name, np.float64, value.unit) for name in ("begin", "end")), pa.field("pairs", pa.int64())]
    schema = pa.schema(fields, {"attribution": given.graph.attribution} if given.graph.attribution else None)
    return pa.Table.from_arrays([pa.array(each) for each in columns.values()], schema=schema)


def counted_in_bins(distances: np.ndarray, width: float) -> np.ndarray:
    """Return the number of distances in each bin, from k * width to (k + 1) * width, int64.

    >>> counted_in_bins(np.array([0, 0.29, 0.31, 0.95]), 0.1).tolist()
    [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    """
    if len(distances) and distances.max() / width >= MOST_BINS:
        raise ValueError(
            f"width (--width) is {width:g}, but distances are up to {distances.max():g}; give a larger width, at most "
            f"{MOST_BINS:,} bins"
        )
    bins = np.floor(distances / width).astype(np.int64)
    bins -= bins * width > distances  # the quotient was rounded up
    bins += (bins + 1) * width <= distances
    return np.bincount(bins)


def round_width(least: float) -> float:
    """Return the least of the numbers 1, 2, 5, 10, 20 and so on, or 0.5, 0.2 and so on, that is at least `least`.

    >>> round_width(730), round_width(0.3), round_width(0)
    (1000.0, 0.5, 1.0)
    """
    if not least > 0:
        return 1.0
    power = math.floor(math.log10(least))
    return next(float(f"{step}e{power}") for step in (1, 2, 5, 10) if float(f"{step}e{power}") >= least * (1 - 1e-12))
