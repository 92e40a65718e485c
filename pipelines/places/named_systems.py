"""Which of several arguments take the coordinate system that a caller names: those that do not say their own.

A GeoDataFrame or GeoSeries may record its coordinate system, and columns `lon` and `lat` say theirs. Names of vertices
have none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pipelines.files.layers import READ, suffix_of
from pipelines.files.tables import column_names, is_among, is_table
from pipelines.places.single import are_places, as_layer, is_pair, is_place, is_point, whole_row
from pipelines.places.systems import ON_EARTH


def systems_for(arguments: Sequence[Any], crs: Any) -> list[Any]:
    """Return the coordinate system to name for each argument: `crs` or None.

    If an argument needs `crs`, arguments that say their own system are read in their own. Otherwise all take `crs`, so
    that a contradiction is found.

    >>> systems_for([(13.5, 52.5), None], "EPSG:4326")
    ['EPSG:4326', 'EPSG:4326']
    """
    says = [_says_system(each) for each in arguments]
    return [None if said and False in says else crs for said in says]


def _says_system(given: Any) -> bool | None:
    """Return whether places say their coordinate system; None if they are no places, but names."""
    given = as_layer(whole_row(given))
    if hasattr(given, "geom_type"):
        return getattr(given, "crs", None) is not None
    if isinstance(given, str | os.PathLike):
        if suffix_of(given) in READ:
            return True
        return _in_columns(column_names(given)) if is_table(given) and os.path.exists(given) else None
    if hasattr(given, "columns"):
        return _in_columns([*map(str, getattr(given, "column_names", given.columns))])
    first = given[0] if isinstance(given, list) and given else given
    if is_pair(given) or is_place(first) or is_point(first) or hasattr(first, "geom_type"):
        return False
    return False if are_places(given) else None


def _in_columns(names: Sequence[str]) -> bool | None:
    for axes, says in ((ON_EARTH, True), (("x", "y"), False)):
        if all(is_among(axis, names) for axis in axes):
            return says
    return None
