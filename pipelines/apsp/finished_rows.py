"""Rows on their way to the store: from what they are inside operations to what they are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import like
from gpuops.numbers import distance_limit, to_outside
from pipelines.apsp.methods import Job
from pipelines.validation.bounds import refuse_overflow


def finish(job: Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of some vertices, as they are inside operations, into rows as they stand in stores, in place."""
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = distance_limit(job.dtype), 64  # rows at a time, as the sums are in int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)
