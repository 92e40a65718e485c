"""A wheel of buckets on a CPU: vertices that wait, in the order of their distances.

Buckets are equally wide, and the wheel holds the next `_BUCKETS` buckets. A vertex that is due later waits in the last
bucket, and is put in again when that bucket opens. A bucket is a list of chunks of vertices. Chunks that are empty go
back to a list of free chunks, so that a wheel stays as small as the number of vertices that wait, and in the caches.

A vertex that comes nearer is put in again. Its earlier entry is found out of date when it is taken out: the vertex then
belongs to a bucket that has been emptied before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops._atomics import prefetch, rolled
from gpuops._compiled_numba import inner

_BUCKETS = 1024  # buckets on the wheel, a power of two
CHUNK = 32  # vertices of a chunk, a power of two
_LATEST = 4e18  # greatest number of a bucket, within int64
_FREE, SPARE, WAITING, BASE = range(4)  # places in Wheel.numbers


class Wheel(NamedTuple):
    """Vertices in buckets. Chunk 0 is not used, so that 0 means no chunk.

    Compiled functions take pointers to the arrays: a tuple of arrays takes far longer to compile.
    """

    vertices: np.ndarray  # the chunks
    following: np.ndarray  # of each chunk: the next chunk of its bucket, or the next free chunk
    places: np.ndarray  # of each bucket: where its next vertex goes, 0 if it is empty
    numbers: np.ndarray  # first free chunk, number of free chunks, number of entries, number of the first bucket


def empty_wheel(chunks: int) -> Wheel:
    """Return a wheel without vertices, with a number of free chunks."""
    following, numbers = np.arange(1, chunks + 2, dtype=np.int32), np.array([1, chunks, 0, 0])
    return Wheel(np.empty((chunks + 1) * CHUNK, np.int32), following, np.zeros(_BUCKETS, np.int64), numbers)


def chunks_of(count: int) -> int:
    """Return the most chunks that this number of vertices may take: full ones, and one more of each bucket."""
    return count // CHUNK + min(count, _BUCKETS)


def with_room(wheel: Wheel, chunks: int) -> Wheel:
    """Return the wheel with at least this number of free chunks more."""
    old = len(wheel.following)
    new = old + chunks
    vertices, following = np.empty((old + new) * CHUNK, np.int32), np.arange(1, old + new + 1, dtype=np.int32)
    vertices[: len(wheel.vertices)], following[:old] = wheel.vertices, wheel.following
    following[-1] = wheel.numbers[_FREE]
    wheel.numbers[_FREE], wheel.numbers[SPARE] = old, wheel.numbers[SPARE] + new
    return Wheel(vertices, following, wheel.places, wheel.numbers)


def waiting_vertices(wheel: Wheel, distances: np.ndarray, per_distance: float) -> np.ndarray:
    """Return the vertices on the wheel that are not out of date, in the order of their buckets."""
    following, chunks, counts = wheel.following.tolist(), [], []
    for place in wheel.places[wheel.places > 0].tolist():
        chunk = (place - 1) // CHUNK
        count = place - chunk * CHUNK
        while chunk:
            chunks.append(chunk)
            counts.append(count)
            chunk, count = following[chunk], CHUNK
    held = np.arange(CHUNK) < np.array(counts, np.int64)[:, None]
    vertices = wheel.vertices.reshape(-1, CHUNK)[np.array(chunks, np.int64)][held]
    buckets: Any = np.minimum(distances[vertices] * np.float64(per_distance), _LATEST).astype(np.int64)
    return vertices[buckets >= wheel.numbers[BASE]]


@inner
def bucket_of(distance, per_distance):
    """Return the number of the bucket of a distance; `per_distance` is the number of buckets per unit of distance."""
    bucket = distance * per_distance
    return np.int64(bucket if bucket < _LATEST else _LATEST)


@inner
def put(held, following, places, numbers, vertices, distances, count, per_distance, indptr):
    """Put vertices into the buckets of these distances. There must be room."""
    free, spare, base, mask = numbers[_FREE], numbers[SPARE], numbers[BASE], np.int64(_BUCKETS - 1)
    if numbers[WAITING] == 0:
        base = np.int64(2**62)
    for i in range(count):
        rolled()
        vertex = vertices[i]
        bucket = bucket_of(distances[i], per_distance)
        if bucket < base:
            base = bucket
        slot = (bucket if bucket < base + mask else base + mask) & mask
        place = places[slot]
        if place & (CHUNK - 1) == 0:
            chunk = free
            free = np.int64(following[chunk])
            spare -= 1
            following[chunk] = (place - 1) // CHUNK if place else 0
            place = chunk * CHUNK
        held[place] = vertex
        places[slot] = place + 1
        prefetch(indptr, vertex)
    numbers[_FREE], numbers[SPARE], numbers[BASE] = free, spare, base
    numbers[WAITING] += count


@inner
def open_next(places, numbers):
    """Go to the first bucket that is not empty, of a wheel with vertices; return the number of buckets passed."""
    base = before = numbers[BASE]
    while places[base & (_BUCKETS - 1)] == 0:
        base += 1
    numbers[BASE] = base
    return base - before


@inner
def take(held, following, places, numbers, distances, per_distance, due, later, later_distances, most):
    """Take vertices out of the first bucket, chunk by chunk, and drop the vertices that are out of date.

    Vertices that are due go to `due`. Vertices that have to wait longer go to `later`, and their distances to
    `later_distances`. Stops when the bucket is empty, or when a further chunk might exceed `most` vertices. Returns
    both numbers of vertices.
    """
    dues, laters, base = 0, 0, numbers[BASE]
    slot = base & (_BUCKETS - 1)
    most -= CHUNK
    place = places[slot]
    while place > 0 and dues <= most and laters <= most:
        chunk = (place - 1) // CHUNK
        for i in range(chunk * CHUNK, place):
            rolled()
            vertex = held[i]
            distance = distances[vertex]
            bucket = bucket_of(distance, per_distance)
            due[dues] = vertex
            dues += bucket == base
            later[laters], later_distances[laters] = vertex, distance
            laters += bucket > base
        numbers[WAITING] -= place - chunk * CHUNK
        after = np.int64(following[chunk])
        place = (after + 1) * CHUNK if after else 0
        following[chunk] = numbers[_FREE]
        numbers[_FREE] = chunk
        numbers[SPARE] += 1
    places[slot] = place
    return dues, laters
