"""Generated samples: clouds of points to try self-organizing maps on.

Blobs and uniform points in any number of dimensions, and shapes in the manner of the Fundamental Clustering Problems
Suite [1]_, of any size. A point depends only on the seed and its number (`counter_random`), so a cloud may be generated
in any pieces. The points of all parts are mixed; the label of a point is its part.

.. [1] M. C. Thrun, A. Ultsch, "Clustering benchmark datasets exploiting the fundamental clustering problems",
   Data in Brief 30:105501, 2020.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
from numba import njit

from gpuops.options import number, whole
from gpuops.recompiling import recompiled_with_imports
from pipelines.generators.counter_random import below, draw
from pipelines.stores.samples import Samples, new_samples, open_samples

PIECE_VALUES = 1 << 22  # values generated at a time

# Streams of random numbers, different from the streams of graphs.
_PART, _PLACE, _CENTRE = map(np.uint64, (16, 17, 18))

_BLOBS, _UNIFORM, _CHAINLINK, _HEPTA, _TETRA, _TARGET, _TWO_DIAMONDS, _WING_NUT, _ATOM, _ENGY_TIME, _GOLF_BALL = range(
    11
)
# kind -> (number of the kind, dimensions, points of each part out of 1,000); None: the user chooses
KINDS: dict[str, tuple[int, int | None, tuple[int, ...] | None]] = {
    "blobs": (_BLOBS, None, None),
    "uniform": (_UNIFORM, None, (1000,)),
    "chainlink": (_CHAINLINK, 3, (500, 500)),
    "hepta": (_HEPTA, 3, (142, 143, 143, 143, 143, 143, 143)),
    "tetra": (_TETRA, 3, (250, 250, 250, 250)),
    "target": (_TARGET, 2, (475, 510, 4, 4, 4, 3)),
    "two-diamonds": (_TWO_DIAMONDS, 2, (500, 500)),
    "wing-nut": (_WING_NUT, 2, (500, 500)),
    "atom": (_ATOM, 3, (500, 500)),
    "engy-time": (_ENGY_TIME, 2, (500, 500)),
    "golf-ball": (_GOLF_BALL, 3, (1000,)),
}


@dataclass(frozen=True, kw_only=True)
class PointCloud:
    """The description of a cloud to generate.

    Attributes
    ----------
    kind : "blobs", "uniform", "chainlink", "hepta", "tetra", "target", "two-diamonds", "wing-nut", "atom", "engy-time"
        or "golf-ball"
    n : number of points
    seed : 0 to 2^64 - 1
    d : dimensions of blobs and of uniform points (from the unit cube); the dimensions of other kinds are fixed
    clusters : number of blobs; their centres are drawn from a cube of side 10
    spread : standard deviation of a blob
    """

    kind: str
    n: int
    seed: int = 0
    d: int = 2
    clusters: int = 5
    spread: float = 0.5

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no cloud {self.kind!r}; choose one of {', '.join(KINDS)}")
        whole("n", self.n, 1, 2**48)
        whole("seed", self.seed, 0, 2**64 - 1)
        whole("d", self.d, 1, 2**16)
        whole("clusters", self.clusters, 1, 2**20)
        number("spread", self.spread, 0, 1e6)
        object.__setattr__(self, "d", KINDS[self.kind][1] or self.d)

    def __str__(self) -> str:
        """Return the kind with the parameters that matter for the kind."""
        named = {"blobs": ("d", "clusters", "spread"), "uniform": ("d",)}.get(self.kind, ())
        parameters = "".join(f", {name}={getattr(self, name)!r}" for name in named)
        return f"{self.kind}(n={self.n}{parameters}, seed={self.seed})"

    @property
    def parts(self) -> int:
        """The number of labels."""
        shares = KINDS[self.kind][2]
        return self.clusters if shares is None else len(shares)

    def points(self, start: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the points numbered `start` to `stop` (excluded; by default all to the end).

        Returns
        -------
        values : (k, d) float64
        labels : (k) int32, from 0
        """
        stop = self.n if stop is None else stop
        if not 0 <= start <= stop <= self.n:
            raise ValueError(f"points {start} to {stop} were asked for; there are 0 to {self.n}")
        number_of_kind, _, shares = KINDS[self.kind]
        limits = np.cumsum(np.full(self.clusters, 1, np.int64) if shares is None else np.array(shares))
        values, labels = np.empty((stop - start, self.d)), np.empty(stop - start, np.int32)
        _make(number_of_kind, np.uint64(self.seed), start, limits, self.spread, values, labels)
        return values, labels


def write_cloud(
    cloud: PointCloud, path: str | os.PathLike[str], *, piece_values: int = PIECE_VALUES, **keywords: Any
) -> Samples:
    """Generate a cloud and write it to a samples store, `piece_values` values at a time. Returns the store, opened.

    `keywords` are as for `tilepath.write_samples`.

    Examples
    --------
    >>> cloud = tilepath.PointCloud(kind="blobs", n=20, d=3, clusters=2)
    >>> tilepath.write_cloud(cloud, "small cloud.zarr").n
    20
    """
    if not isinstance(cloud, PointCloud):
        raise ValueError(
            f"cloud is a {type(cloud).__name__}; pass a cloud, such as tilepath.PointCloud(kind='blobs', n=1000)"
        )
    step = max(1, piece_values // cloud.d)
    names = ["x", "y", "z"][: cloud.d] if cloud.d <= 3 else list(map(str, range(cloud.d)))
    with new_samples(path, columns=names, labelled=True, source=str(cloud), **keywords) as writer:
        for start in range(0, cloud.n, step):
            values, labels = cloud.points(start, min(start + step, cloud.n))
            writer.append(values, labels=labels.tolist())
    return open_samples(path)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _make(kind, seed, start, limits, spread, values, labels):
    """Fill values (k, d) and labels (k) with the points from `start`."""
    d = values.shape[1]
    u = np.empty(2 * d + 4)
    for row in range(values.shape[0]):
        item = np.uint64(start + row)
        high, low, _, _ = draw(seed, _PART, item, np.uint64(0))
        ticket = np.int64(below(np.uint64(limits[-1]), high, low))
        label = np.searchsorted(limits, ticket, side="right")
        labels[row] = label
        for k in range(0, u.size - 1, 2):
            a, b, c, e = draw(seed, _PLACE, item, np.uint64(k // 2))
            u[k], u[k + 1] = _fraction(a, b), _fraction(c, e)
        if kind == _BLOBS:
            for j in range(d):
                a, b, _, _ = draw(seed, _CENTRE, np.uint64(label), np.uint64(j))
                values[row, j] = 10 * _fraction(a, b) + spread * _normal(u[2 * j], u[2 * j + 1])
        elif kind == _UNIFORM:
            for j in range(d):
                values[row, j] = u[j]
        else:
            _place(kind, label, u, values[row])


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _fraction(high, low):
    """Return a number between 0 and 1, both excluded."""
    return (np.float64(((high << np.uint64(32)) | low) >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _normal(u, v):
    """Return a normally distributed number, by Box and Muller's transform."""
    return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _on_sphere(u, v, radius, out):
    z = 2 * u - 1
    flat = radius * math.sqrt(1 - z * z)
    out[0], out[1], out[2] = flat * math.cos(2 * math.pi * v), flat * math.sin(2 * math.pi * v), radius * z


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _place(kind, label, u, out):
    """Write a point of part `label` of a shape to `out`, from numbers u between 0 and 1."""
    turn = 2 * math.pi * u[0]
    if kind == _CHAINLINK:
        # Two interlocked rings: a point of a circle, moved within a disc across the circle.
        reach, across = 1 + 0.15 * math.sqrt(u[1]) * math.cos(2 * math.pi * u[2]), 2 * math.pi * u[2]
        off = 0.15 * math.sqrt(u[1]) * math.sin(across)
        x, y = reach * math.cos(turn), reach * math.sin(turn)
        if label == 0:
            out[0], out[1], out[2] = x, y, off
        else:
            out[0], out[1], out[2] = x + 1, off, y
    elif kind == _HEPTA:
        # Balls around the origin and six points on the axes; the ball around the origin is denser.
        _on_sphere(u[0], u[1], (0.5 if label == 0 else 1.0) * u[2] ** (1 / 3), out)
        if label > 0:
            out[(label - 1) // 2] += 3.0 if label % 2 else -3.0
    elif kind == _TETRA:
        # Four balls that nearly touch, at the corners of a tetrahedron.
        _on_sphere(u[0], u[1], 0.95 * u[2] ** (1 / 3), out)
        side = 1 / math.sqrt(2)
        out[0] += side if label in (0, 1) else -side
        out[1] += side if label in (0, 2) else -side
        out[2] += side if label in (0, 3) else -side
    elif kind == _TARGET:
        # A disc, a ring around it and four groups of outliers.
        if label < 2:
            radius = 0.8 * math.sqrt(u[1]) if label == 0 else 2.0 + 0.2 * (2 * u[1] - 1)
            out[0], out[1] = radius * math.cos(turn), radius * math.sin(turn)
        else:
            out[0] = (3.0 if label in (2, 3) else -3.0) + 0.1 * (2 * u[0] - 1)
            out[1] = (3.0 if label in (2, 4) else -3.0) + 0.1 * (2 * u[1] - 1)
    elif kind == _TWO_DIAMONDS:
        # Two squares standing on a corner, which touch at another corner.
        p, q = 2 * u[0] - 1, 2 * u[1] - 1
        out[0], out[1] = 0.98 * (p + q) / 2 + (1.0 if label else -1.0), 0.98 * (p - q) / 2
    elif kind == _WING_NUT:
        # Two rectangles side by side; each is densest at the side towards the other rectangle.
        x, y = 1 - math.sqrt(1 - u[0]), 3 * u[1] + (0.5 if label else -0.5)
        out[0], out[1] = (0.15 + 2 * x, y) if label else (-0.15 - 2 * x, y)
    elif kind == _ATOM:
        # A ball within a hull.
        radius = 10 * u[2] ** (1 / 3) if label == 0 else 50.0 + 2 * (2 * u[2] - 1)
        _on_sphere(u[0], u[1], radius, out)
    elif kind == _ENGY_TIME:
        # Two normal distributions that overlap.
        shift, deviation = (2.5, 1.5) if label else (0.0, 1.0)
        out[0], out[1] = shift + deviation * _normal(u[0], u[1]), shift + deviation * _normal(u[2], u[3])
    else:
        _on_sphere(u[0], u[1], 1.0, out)
