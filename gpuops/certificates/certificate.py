"""The result of a proof of shortest distances."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """How much was checked, and within which tolerance."""

    rows: int
    arcs: int  # tests of the triangle inequality
    hops: int | None  # the most arcs on a shortest path; None: not counted
    relative: float  # the largest tolerance granted is relative * |D[v]| + absolute; both are 0 for integers
    absolute: float
    slack: float  # the largest violation of the triangle inequality by rounding, 0 for integers


def join_certificates(certificates: list[Certificate]) -> Certificate:
    """Return one certificate for all rows checked."""
    return Certificate(
        rows=sum(c.rows for c in certificates),
        arcs=sum(c.arcs for c in certificates),
        hops=max((c.hops for c in certificates if c.hops is not None), default=None),
        relative=max((c.relative for c in certificates), default=0.0),
        absolute=max((c.absolute for c in certificates), default=0.0),
        slack=max((c.slack for c in certificates), default=0.0),
    )
