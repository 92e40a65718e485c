"""Whether the roads of a network are joined: a warning about a small largest component, its cause, and the cure.

Vertices outside the largest strongly connected component cannot be reached from most others, or do not reach them. Two
causes are common in layers: ends of lines that should meet are a few millimetres apart, or lines cross without an end.
"""

from __future__ import annotations

import numpy as np

from gpuops import weak_components
from pipelines.formats.graphs.osm.largest_component import largest_of_rows

LEAST_JOINED = 0.9  # a largest component with a smaller share of the vertices is doubtful
LEAST_VERTICES = 20  # in smaller graphs, a few one-way roads make any share usual
GRIDS = 0.001, 0.01, 0.1, 1.0  # widths of cells that ends may be snapped to, in units of a plane, mostly metres
GRIDS_IN_DEGREES = 1e-8, 1e-7, 1e-6, 1e-5  # about the same widths
METRES_OF_DEGREE = 111_320.0


def poorly_joined(name: str, indptr: np.ndarray, heads: np.ndarray) -> str:
    """Return a warning if the largest strongly connected component of a network is small, else ""."""
    n = len(indptr) - 1
    if n < LEAST_VERTICES:
        return ""
    largest = largest_of_rows(indptr, heads)
    if largest >= LEAST_JOINED * n:
        return ""
    return f"{name}: the largest strongly connected component has only {largest:,} of {n:,} vertices"


def why_roads_are_apart(
    indptr: np.ndarray,
    heads: np.ndarray,
    places: np.ndarray,
    *,
    degrees: bool,
    from_web_mercator: bool,
    unit: str,
    named: bool,
) -> str:
    """Return the probable cause of a small largest component, and the cure.

    Parameters
    ----------
    indptr, heads : the arcs
    places : (n, 2) float64
    degrees : whether places are longitudes and latitudes
    from_web_mercator : whether they were in Web Mercator in the layer, where the user will snap them
    unit : unit of the coordinates of a plane
    named : whether vertices have names; they are joined by these then, and not by their places
    """
    components = weak_components(indptr, heads, compact=True, check=False)
    if np.bincount(components).max() >= LEAST_JOINED * len(places):
        return (
            "since many roads lead one way only; check the column of directions (oneway, --oneway), or take all lines "
            "in both directions (directed=False, --undirected)"
        )
    if named:
        return "since the columns of tails and heads name vertices that no line joins; complete the lines"
    found = [_snapped(components, places, grid) for grid in (GRIDS_IN_DEGREES if degrees else GRIDS)]
    most = max(closed for closed, _ in found)
    if not most:
        return "since roads join only where lines end; split them at their crossings first (in QGIS: Split with lines)"
    best = next(i for i, (closed, _) in enumerate(found) if closed >= LEAST_JOINED * most)
    closed, gap = found[best]
    size = f"{gap * METRES_OF_DEGREE:.2g} m" if degrees else f"{gap:.2g} {unit}".rstrip()
    grid = (GRIDS_IN_DEGREES if degrees else GRIDS)[best]
    first = "roads = roads.to_crs(4326); " if from_web_mercator else ""
    return (
        f"since ends of lines are apart by up to {size}; snapping them joins components at {closed:,} "
        f"place{'s' * (closed > 1)}, in GeoPandas by {first}roads.geometry = roads.geometry.set_precision({grid:g})"
    )


def _snapped(components: np.ndarray, places: np.ndarray, grid: float) -> tuple[int, float]:
    """Return at how many places components meet if places are snapped to a grid, and the widest gap that closes."""
    _, first, cell = np.unique(np.round(places / grid), axis=0, return_index=True, return_inverse=True)
    other = first[cell.ravel()]
    moved = components != components[other]
    if not moved.any():
        return 0, 0.0
    gap = np.hypot(*(places[moved] - places[other[moved]]).T).max()
    return len(np.unique(other[moved])), float(gap)
