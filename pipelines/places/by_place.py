"""The nearest vertices of places: vertices are sorted by place once, and each place is found in a few steps.

The order of the vertices is a k-d tree without pointers: the vertex in the middle of a range divides the range into two
halves by x, the vertex in the middle of a half divides the half by y, and so on, by x and y in turns. J. L. Bentley,
"Multidimensional binary search trees used for associative searching", Communications of the ACM 18(9), 1975.

The tree of longitudes and latitudes also answers on the sphere: each range lies within a box of meridians and
parallels, and no vertex is nearer than the box. Of vertices that are equally near, the one with the lowest position is
found, so that results do not depend on the order.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from gpuops.extras import install
from pipelines.stores.graph import Graph

EARTH_RADIUS = 6_371_008.8  # in metres: the mean radius of the IUGG
LEAF = 16  # most vertices of a range that is not divided
DEPTH = 64  # most ranges that wait: one for each level, and there are fewer levels than bits in the number of vertices
# Bounds of boxes are lowered by this share, which is more than they are rounded by.
SLACK = 1e-9


class ByPlace(NamedTuple):
    """The vertices with coordinates, sorted by place.

    Attributes
    ----------
    component : (s,) int32 or int64
        The vertices of the largest strongly connected component, where paths lead both ways.
    others : (r,) int32 or int64
        The other vertices.
    """

    component: np.ndarray
    others: np.ndarray


def has_scipy() -> bool:
    """Return whether SciPy is installed, which finds the component."""
    return find_spec("scipy") is not None


def by_place_bytes(graph: Graph) -> int:
    """Return the bytes of memory that `vertices_by_place` takes."""
    return 20 * graph.m + 80 * graph.n


def vertices_by_place(graph: Graph, coordinates: np.ndarray) -> ByPlace:
    """Sort the vertices of a graph by place.

    Parameters
    ----------
    coordinates : (n, 2) float64
        Coordinates of the vertices; NaN for a vertex without coordinates, which is left out.

    Raises
    ------
    ImportError
        SciPy is not installed.
    """
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components
    except ImportError as error:
        raise ImportError(f"snapping places to vertices needs SciPy: {install('csgraph')}") from error
    indptr, indices = graph.indptr(), graph.indices()
    if len(indices) < 2**31:
        indptr = indptr.astype(np.int32)
    ones = np.ones(len(indices), bool)
    _, component = connected_components(
        csr_array((ones, indices, indptr), shape=(graph.n, graph.n)), connection="strong"
    )
    within, placed = component == np.bincount(component, minlength=1).argmax(), np.isfinite(coordinates).all(axis=1)
    placed[graph.road_vertices :] = False  # paths begin and end at junctions, not at vertices that turns added
    return ByPlace(*(_sorted(np.flatnonzero(which & placed), coordinates) for which in (within, ~within)))


def nearest(
    order: np.ndarray, coordinates: np.ndarray, places: np.ndarray, *, on_the_globe: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest vertex of each place.

    Parameters
    ----------
    order : vertices in the order of `vertices_by_place`
    coordinates : (n, 2) float64
    places : (k, 2) float64
        Longitude and latitude in degrees if `on_the_globe`, else x and y.

    Returns
    -------
    (k,) int64 and (k,) float64
        The vertices, and their distances: in metres on a sphere if `on_the_globe`, else in units of the coordinates.
        Infinite if there is no vertex.
    """
    found, apart = np.full(len(places), -1), np.full(len(places), np.inf)
    _nearest(order, coordinates, np.ascontiguousarray(places, np.float64), on_the_globe, found, apart)
    return found, 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(apart, 1))) if on_the_globe else np.sqrt(apart)


def _sorted(vertices: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    order = vertices.astype(np.int32 if len(coordinates) <= 2**31 else np.int64)
    _sort(np.ascontiguousarray(coordinates[vertices], np.float64), order)
    return order


@njit(nogil=True, cache=True)
@no_type_check
def _sort(points, order):
    """Sort `order`, and the points of its vertices, into a k-d tree."""
    firsts, stops, axes = np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64)
    firsts[0], stops[0], axes[0], waiting = 0, len(order), 0, 1
    while waiting:
        waiting -= 1
        first, stop, axis = firsts[waiting], stops[waiting], axes[waiting]
        if stop - first <= LEAF:
            continue
        middle = (first + stop) // 2
        _select(points, order, first, stop - 1, middle, axis)
        for each in range(2):
            firsts[waiting], stops[waiting] = ((first, middle), (middle + 1, stop))[each]
            axes[waiting] = 1 - axis
            waiting += 1


@njit(nogil=True, cache=True)
@no_type_check
def _select(points, order, first, last, middle, axis):
    """Move points between `first` and `last` until none before `middle` is greater than it, and none after it less.

    C. A. R. Hoare, "Algorithm 65: Find", Communications of the ACM 4(7), 1961, with the median of three as divider.
    """
    while first < last:
        a, b, c = points[first, axis], points[(first + last) // 2, axis], points[last, axis]
        divider = max(min(a, b), min(max(a, b), c))
        low, high = first, last
        while low <= high:
            while points[low, axis] < divider:
                low += 1
            while points[high, axis] > divider:
                high -= 1
            if low <= high:
                for coordinate in range(2):
                    held = points[low, coordinate]
                    points[low, coordinate] = points[high, coordinate]
                    points[high, coordinate] = held
                order[low], order[high] = order[high], order[low]
                low, high = low + 1, high - 1
        if middle <= high:
            last = high
        elif middle >= low:
            first = low
        else:
            return


@njit(nogil=True, cache=True)
@no_type_check
def _nearest(order, coordinates, places, on_the_globe, found, apart):
    """Find the nearest vertex of each place; `apart` becomes the squared distance, or on the globe the haversine."""
    firsts, stops, axes = np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64)
    boxes, bounds = np.empty((DEPTH, 2, 2)), np.empty(DEPTH)
    for i in range(len(places)):
        firsts[0], stops[0], axes[0], bounds[0], waiting = 0, len(order), 0, 0.0, 1
        boxes[0, :, 0], boxes[0, :, 1] = -np.inf, np.inf
        if on_the_globe:
            boxes[0, 0, 0], boxes[0, 0, 1] = -180.0, 180.0
        x, y, least, vertex = places[i, 0], places[i, 1], np.inf, -1
        while waiting:
            waiting -= 1
            if bounds[waiting] > least:
                continue
            first, stop, axis = firsts[waiting], stops[waiting], axes[waiting]
            leaf, middle = stop - first <= LEAF, (first + stop) // 2
            for at in range(first if leaf else middle, stop if leaf else middle + 1):
                other = order[at]
                distance = _apart(x, y, coordinates[other, 0], coordinates[other, 1], on_the_globe)
                if distance < least or (distance == least and other < vertex):
                    least, vertex = distance, other
            if leaf:
                continue
            divider = coordinates[order[middle], axis]
            # The half of the place itself is entered first: it waits on top.
            before = places[i, axis] < divider
            for side in range(4):  # Numba compiles this loop seconds faster than the assignment of a box
                boxes[waiting + 1, side // 2, side % 2] = boxes[waiting, side // 2, side % 2]
            for each in range(2):
                left = before == (each == 1)
                firsts[waiting], stops[waiting] = (first, middle) if left else (middle + 1, stop)
                boxes[waiting, axis, 1 if left else 0] = divider
                axes[waiting] = 1 - axis
                bounds[waiting] = _bound(x, y, boxes[waiting], on_the_globe) * (1 - SLACK)
                waiting += 1
        found[i], apart[i] = vertex, least


@njit(nogil=True, cache=True)
@no_type_check
def _apart(x, y, u, v, on_the_globe):
    """Return the squared distance of two points, or, on the globe, the haversine of the angle between them."""
    if not on_the_globe:
        return (u - x) ** 2 + (v - y) ** 2
    east, north = np.sin(np.radians(u - x) / 2), np.sin(np.radians(v - y) / 2)
    return north**2 + np.cos(np.radians(y)) * np.cos(np.radians(v)) * east**2


@njit(nogil=True, cache=True)
@no_type_check
def _bound(x, y, box, on_the_globe):
    """Return a number that `_apart` does not go below for a point and the points in a box."""
    north = max(box[1, 0] - y, y - box[1, 1], 0.0)
    if not on_the_globe:
        return max(box[0, 0] - x, x - box[0, 1], 0.0) ** 2 + north**2
    bound = np.sin(np.radians(north) / 2) ** 2
    if not box[0, 0] <= x <= box[0, 1]:
        # The nearest point of a meridian: farther than 90 degrees of longitude, it is the pole.
        turn = min((box[0, 0] - x) % 360, (x - box[0, 1]) % 360, 90.0)
        sine = np.cos(np.radians(y)) * np.sin(np.radians(turn))
        bound = max(bound, sine**2 / (2 * (1 + np.sqrt(max(1 - sine**2, 0.0)))))
    return bound
