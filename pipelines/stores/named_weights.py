"""The names of the weights of a graph: a store may have several, such as the time, the length and the toll of each arc.

`roads.zarr#length` names the graph with its weights called length (`pipelines.stores.graph_names`). The weights that a
store was imported with are the array `weights`; the others are `weights_1`, `weights_2` and so on. Each has a digest
of its own, so that a result remembers the weights that it was computed from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.stores.declared import real
from pipelines.stores.schema import recorded_dtype


@dataclass(frozen=True)
class Weights:
    """Weights of a graph, which lie in `array`. The name of those that the graph was imported with may be ""."""

    name: str
    array: str
    dtype: np.dtype
    low: float
    high: float
    unit: str
    digest: str


def weights_of(attributes: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[Weights, ...]:
    """Return all weights of a graph store, the imported ones first; raises an error if their record is damaged."""
    imported = {"min": found["weight_min"], "max": found["weight_max"], "dtype": str(found["weight_dtype"])}
    imported |= {"name": attributes.get("weight_name", ""), "unit": found["weight_unit"], "digest": found["digest"]}
    listed = [("weights", imported)] if "weights" in found["arrays"] else []
    listed += [(f"weights_{i}", each) for i, each in enumerate(attributes.get("more_weights", ()), 1)]
    weights = tuple(
        Weights(
            array=array, dtype=recorded_dtype(each["dtype"]), low=real(each["min"]), high=real(each["max"]),
            **{key: each[key] for key in ("name", "unit", "digest")},
        )
        for array, each in listed
    )  # fmt: skip
    for each in weights:
        if not all(type(text) is str for text in (each.name, each.unit, each.digest)):
            raise TypeError(each)
    return weights
