"""What a proof of shortest distances says of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """What was checked, and within what tolerance."""

    rows: int
    arcs: int  # tests of the triangle inequality
    hops: int | None  # the most arcs on a shortest path found; None: not looked for
    relative: float  # the largest tolerance granted: relative * |D[v]| + absolute; both 0 for integers
    absolute: float
    slack: float  # the most by which rounding broke the triangle inequality, 0 for integers


def join_certificates(certificates: list[Certificate]) -> Certificate:
    """One certificate for all rows checked."""
    return Certificate(
        rows=sum(c.rows for c in certificates),
        arcs=sum(c.arcs for c in certificates),
        hops=max((c.hops for c in certificates if c.hops is not None), default=None),
        relative=max(c.relative for c in certificates),
        absolute=max(c.absolute for c in certificates),
        slack=max(c.slack for c in certificates),
    )
