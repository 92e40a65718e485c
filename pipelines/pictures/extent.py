"""The extent of a map: areas outside of the network are refused, and areas are cut at the edge of the map.

An area of another city, or in another coordinate system, would make the map a dot on a huge page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.pictures.layout import on_paper

ROOM = 0.05  # areas reach beyond the streets by at most this share of the longer side of the map

Box = tuple[np.ndarray, np.ndarray]  # the smallest and the largest coordinates, (2) each


def box_around(points: np.ndarray, degrees: bool) -> Box:
    """Return the box of some points (k, 2), and of some room on each side."""
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    scale = on_paper(np.array([low, high])) if degrees else np.ones(2)
    room = ROOM * ((high - low) * scale).max() / scale
    return low - room, high + room


def refuse_areas(frame: Any, box: Box, crs: Any) -> None:
    """Raise ValueError if an area lies outside the box of a network.

    `frame`, a GeoDataFrame, has the areas in the coordinate system of the network; `crs` is the system in which they
    were given, or None.
    """
    low, high = box
    bounds = frame.bounds.to_numpy()  # NaN if an area is empty
    outside = (bounds[:, :2] > high).any(axis=1) | (bounds[:, 2:] < low).any(axis=1) | np.isinf(bounds).any(axis=1)
    for row in np.flatnonzero(outside)[:1].tolist():
        cause = (
            "it has no coordinate system: set the system of the areas (set_crs)"
            if crs is None
            else f"it is of another network, or {crs.to_string()} is not its coordinate system"
        )
        raise ValueError(
            f"areas, row {row + 1}: the area, at {_place(bounds[row, :2])}, is outside the network, which reaches from "
            f"{_place(low)} to {_place(high)}; {cause}"
        )


def clipped(frame: Any, box: Box) -> Any:
    """Return areas without their parts outside a box; areas within the box stay as they are."""
    low, high = box
    bounds = frame.bounds.to_numpy()
    within = (bounds[:, :2] >= low).all(axis=1) & (bounds[:, 2:] <= high).all(axis=1)
    if within.all():
        return frame
    return frame.set_geometry(frame.geometry.where(within, frame.make_valid().clip_by_rect(*low, *high)))


def _place(point: np.ndarray) -> str:
    return f"({point[0]:.8g}, {point[1]:.8g})"
