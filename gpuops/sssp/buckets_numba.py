"""A wheel of buckets on a CPU: vertices that wait, in the order of their distances.

Buckets are equally wide, and the wheel holds the next `_BUCKETS` buckets. A vertex that is due later waits in the last
bucket, and is put in again when that bucket opens. A bucket is a list of chunks of vertices. Chunks that are empty go
back to a list of free chunks, so that a wheel stays as small as the number of vertices that wait, and in the caches.

A vertex that comes nearer is put in again. Its earlier entry is found out of date when it is taken out: the vertex then
belongs to a bucket that has been emptied before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gpuops._atomics import prefetch
from gpuops._inner_numba import inner

_BUCKETS = 1024  # buckets on the wheel, a power of two
CHUNK = 32  # vertices of a chunk, a power of two
_LATEST = 4e18  # greatest number of a bucket, within int64
_FREE, _SPARE, WAITING, BASE = range(4)  # places in Wheel.numbers


class Wheel(NamedTuple):
    """Vertices in buckets. Chunk 0 is not used, so that 0 means no chunk."""

    vertices: np.ndarray  # the chunks
    following: np.ndarray  # of each chunk: the next chunk of its bucket, or the next free chunk
    places: np.ndarray  # of each bucket: where its next vertex goes, 0 if it is empty
    numbers: np.ndarray  # first free chunk, number of free chunks, number of entries, number of the first bucket


@inner
def bucket_of(distance, per_distance):
    """Return the number of the bucket of a distance; `per_distance` is the number of buckets per unit of distance."""
    return np.int64(min(distance * per_distance, _LATEST))


def empty_wheel(chunks: int) -> Wheel:
    """Return a wheel without vertices, with a number of free chunks."""
    following, numbers = np.arange(1, chunks + 1, dtype=np.int32), np.array([1, chunks - 1, 0, 0])
    return Wheel(np.empty(chunks * CHUNK, np.int32), following, np.zeros(_BUCKETS, np.int64), numbers)


@njit(nogil=True, cache=True)
def with_room(wheel, count):
    """Return the wheel with so many free chunks that `count` vertices can be put in."""
    if wheel.numbers[_SPARE] >= count:
        return wheel
    old = wheel.following.size
    chunks = 2 * old + np.int64(count)
    vertices, following = np.empty(chunks * CHUNK, np.int32), np.empty(chunks, np.int32)
    for i in range(old * CHUNK):
        vertices[i] = wheel.vertices[i]
    for chunk in range(chunks):
        following[chunk] = wheel.following[chunk] if chunk < old else chunk + 1
    following[chunks - 1] = wheel.numbers[_FREE]
    wheel.numbers[_FREE] = old
    wheel.numbers[_SPARE] += chunks - old
    return Wheel(vertices, following, wheel.places, wheel.numbers)


@njit(nogil=True, cache=True)
def put(wheel, vertices, distances, count, per_distance, indptr):
    """Put vertices into the buckets of these distances. There must be room."""
    numbers, mask = wheel.numbers, np.int64(_BUCKETS - 1)
    free, spare, base = numbers[_FREE], numbers[_SPARE], numbers[BASE]
    if numbers[WAITING] == 0:
        base = np.int64(2**62)
    for i in range(count):
        vertex = np.uint64(vertices[i])
        bucket = bucket_of(distances[i], per_distance)
        base = min(base, bucket)
        slot = np.uint64(min(bucket, base + mask) & mask)
        place = wheel.places[slot]
        if place & (CHUNK - 1) == 0:
            chunk = free
            free = np.int64(wheel.following[np.uint64(chunk)])
            spare -= 1
            wheel.following[np.uint64(chunk)] = (place - 1) // CHUNK if place else 0
            place = chunk * CHUNK
        wheel.vertices[np.uint64(place)] = vertex
        wheel.places[slot] = place + 1
        prefetch(indptr, vertex)
    numbers[_FREE], numbers[_SPARE], numbers[BASE] = free, spare, base
    numbers[WAITING] += np.int64(count)


@njit(nogil=True, cache=True)
def open_next(wheel):
    """Go to the first bucket that is not empty, of a wheel with vertices; return the number of buckets passed."""
    base = before = wheel.numbers[BASE]
    while wheel.places[base & (_BUCKETS - 1)] == 0:
        base += 1
    wheel.numbers[BASE] = base
    return base - before


@inner
def is_open(wheel):
    """Return whether the first bucket holds vertices."""
    return wheel.places[wheel.numbers[BASE] & (_BUCKETS - 1)] > 0


@njit(nogil=True, cache=True)
def take_chunk(wheel, distances, per_distance, due, dues, later, later_distances, laters):
    """Take a chunk of vertices out of the first bucket, and drop the vertices that are out of date.

    Vertices that are due are appended to the `dues` vertices of `due`; vertices that have to wait longer are appended
    to `later`, and their distances to `later_distances`. Returns both numbers of vertices.
    """
    numbers = wheel.numbers
    base = numbers[BASE]
    slot = base & (_BUCKETS - 1)
    place = wheel.places[slot]
    chunk = (place - 1) // CHUNK
    for i in range(chunk * CHUNK, place):
        vertex = np.uint64(wheel.vertices[i])
        distance = distances[vertex]
        bucket = bucket_of(distance, per_distance)
        due[dues] = vertex
        dues += np.uint64(bucket == base)
        later[laters], later_distances[laters] = vertex, distance
        laters += np.uint64(bucket > base)
    numbers[WAITING] -= place - chunk * CHUNK
    after = np.int64(wheel.following[chunk])
    wheel.places[slot] = (after + 1) * CHUNK if after else 0
    wheel.following[chunk] = numbers[_FREE]
    numbers[_FREE] = chunk
    numbers[_SPARE] += 1
    return dues, laters


@njit(nogil=True, cache=True)
def take_all(wheel, distances, per_distance):
    """Empty the wheel; return its vertices that are not out of date, their distances, and their number."""
    numbers, count = wheel.numbers, np.uint64(0)
    vertices, kept = np.empty(numbers[WAITING], np.int32), np.empty(numbers[WAITING], distances.dtype)
    for slot in range(_BUCKETS):
        place = wheel.places[slot]
        while place:
            chunk = (place - 1) // CHUNK
            for i in range(chunk * CHUNK, place):
                distance = distances[wheel.vertices[i]]
                if bucket_of(distance, per_distance) >= numbers[BASE]:
                    vertices[count], kept[count] = wheel.vertices[i], distance
                    count += np.uint64(1)
            after = np.int64(wheel.following[chunk])
            place = (after + 1) * CHUNK if after else 0
            wheel.following[chunk] = numbers[_FREE]
            numbers[_FREE] = chunk
            numbers[_SPARE] += 1
        wheel.places[slot] = 0
    numbers[WAITING] = 0
    return vertices, kept, count
