"""The open vertices where searches from sources start, on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuops.hierarchy.closing import Hierarchy


class Starts(NamedTuple):
    """The open vertices where searches start, by ascending place.

    An open source starts at itself. A closed source starts at the open heads of its arcs.

    Attributes
    ----------
    places : (s,) int32
        The place of each start.
    sources : (s,) int32
        The number of the source of each start: its position among all sources.
    lengths : (s,) array of the distance dtype
        The distance from the source to the start.
    """

    places: np.ndarray
    sources: np.ndarray
    lengths: np.ndarray


def starts_of(hierarchy: Hierarchy, places: np.ndarray) -> Starts:
    """Return the starts of sources, given by their places."""
    open_ = hierarchy.structure.open
    inside, outside = np.flatnonzero(places < open_), np.flatnonzero(places >= open_)
    owners, heads, lengths = hierarchy.closed.leaving.rows(places[outside] - open_)
    all_places = np.concatenate([places[inside], heads]).astype(np.int32)
    sources = np.concatenate([inside, outside[owners]]).astype(np.int32)
    all_lengths = np.concatenate([np.zeros(len(inside), lengths.dtype), lengths])
    order = np.argsort(all_places, kind="stable")
    return Starts(all_places[order], sources[order], all_lengths[order])
