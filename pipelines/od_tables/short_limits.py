"""Short limits of time without a unit, which are probably meant in minutes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.od_tables.given import Given
from pipelines.od_tables.near import Near
from pipelines.od_tables.units import measured
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.units import question_of_short, read_numbers

PROBES = 32  # origins whose destinations are counted
FEW = 0.01  # share of the pairs of different vertices; if fewer are within the limit, the limit is questioned


def short_limit(given: Given, within: float | str | Sequence[float | str] | None, unit: str | None) -> str | None:
    """Return what to say of a short limit without a unit, within which hardly any destination is; None otherwise.

    `within` and `unit` are the options of `tilepath.od`, which were checked.
    """
    value = measured(given.graph.unit, unit)
    numbers, own = ([], "") if within is None else read_numbers(within, "within")
    if not numbers or own:
        return None
    limit = max(numbers)
    question = question_of_short([limit], value.unit, "within", "table", "destination")
    if question is None:
        return None
    origins, destinations = given.points
    origins = origins.take(np.arange(len(origins.vertices))[:: max(1, len(origins.vertices) // PROBES)][:PROBES])
    begins, ends = origins.vertices, destinations.vertices
    others = begins[:, None] != ends
    if isinstance(given.source, HierarchyStore):
        reached = others & (value.of(given.source.between(begins, ends)) <= limit)
    elif given.source.weight_min < 0:
        return None
    else:  # searches that end at the limit
        near = Near(given.source, np.dtype(np.float64), origins, destinations, value.in_network(limit))
        found = near.pairs(slice(0, len(begins)))
        reached = others[found.origins, found.destinations]
    return question if reached.sum() < FEW * others.sum() else None
