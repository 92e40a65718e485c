"""The shortest paths of pairs of origins and destinations: their vertices and their lengths."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from pipelines.answers.od_points import length_of
from pipelines.answers.routes import Walker
from pipelines.answers.tables import legible, number_field, vertex_names
from pipelines.stores import Graph

PATHS = pa.large_list(pa.large_string())


class PairRoutes:
    """Finds the paths of pairs from rows of distances.

    Parameters
    ----------
    graph : Graph
    dtype : dtype of the distances
    on_the_globe : bool or None
        Whether coordinates are longitudes and latitudes; with None, `in_degrees` decides.
    suffix : suffix of the table
    """

    def __init__(self, graph: Graph, dtype: np.dtype, on_the_globe: bool | None, suffix: str):
        self._walker = Walker(graph, dtype)
        self._names = vertex_names(graph)
        self._apart, self._unit = length_of(graph, on_the_globe)
        self._suffix = suffix

    def fields(self) -> list[pa.Field]:
        """Return the columns: the length of a path, if the graph has coordinates, and the vertices along the path."""
        length = [] if self._apart is None else [number_field("length", np.float64, self._unit)]
        return [*length, pa.field("path", PATHS)]

    def columns(self, sources: np.ndarray, rows: np.ndarray, i: np.ndarray, targets: np.ndarray) -> list[pa.Array]:
        """Return the values of the columns for some pairs; null if no path joins a pair.

        Parameters
        ----------
        sources, rows : (k,) vertices, and (k, n) distances from these vertices
        i, targets : pairs: (l,) numbers of rows, rising, and (l,) vertices
        """
        starts = np.searchsorted(i, np.arange(len(sources) + 1))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            walks = list(
                pool.map(
                    lambda k: self._walker.walk(int(sources[k]), rows[k], targets[starts[k] : starts[k + 1]]),
                    range(len(sources)),
                )
            )
        none = np.empty(0, np.int64)
        hops, vertices = (np.concatenate([none, *(walk[part] for walk in walks)]) for part in (0, 1))
        missing = hops < 0
        ends = np.cumsum(np.where(missing, 0, hops + 1))
        offsets = np.concatenate([[0], ends])
        names = self._names.take(pa.array(vertices))
        path = pa.LargeListArray.from_arrays(offsets, names, mask=pa.array(missing))
        return [*self._lengths(vertices, ends, missing), path]

    def _lengths(self, vertices: np.ndarray, ends: np.ndarray, missing: np.ndarray) -> list[pa.Array]:
        if self._apart is None:
            return []
        steps = np.zeros(len(vertices))  # length from each vertex to the next vertex of its path, 0 at the end
        if len(vertices) > 1:
            steps[:-1] = self._apart(vertices[:-1], vertices[1:])
        there = ends[~missing]
        steps[there - 1] = 0
        lengths = np.zeros(len(missing))
        if len(there):
            lengths[~missing] = np.add.reduceat(steps, np.concatenate([[0], there[:-1]]))
        lengths = legible(lengths, self._unit, self._suffix)
        return [pa.array(lengths, mask=missing | np.isnan(lengths))]
