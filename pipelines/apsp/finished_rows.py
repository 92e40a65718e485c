"""Rows on their way to the store: from the numbers of operations to the numbers of stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import like
from gpuops.numbers import distance_limit, to_outside
from pipelines.apsp.methods import Job
from pipelines.validation.bounds import refuse_overflow


def finish(job: Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of `vertices` into rows of a distances store, in place.

    Distances that do not fit the dtype are refused, distances by potentials are shifted back, the diagonal is set to 0,
    and unreachable vertices get the value that stores have for them.
    """
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = distance_limit(job.dtype), 64  # `step` rows at a time, as sums take int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)
