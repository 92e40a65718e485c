"""Axes with the coordinates of the network, so that users can draw on a map that was drawn in points of the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pipelines.pictures.drawing import Drawing
from pipelines.pictures.layout import map_frame


def use_coordinates(axes: Any, artists: Iterable[Any], drawing: Drawing) -> None:
    """Give axes the coordinates of the network of a map; `artists`, which are in points of the page, stay in place."""
    from matplotlib.transforms import Affine2D

    assert drawing.coordinates is not None
    low, scale = map_frame(drawing.coordinates, drawing.inches)
    stretched = np.ones(2) if drawing.stretched is None else drawing.stretched
    from_page = Affine2D().scale(1 / scale).translate(*low).scale(*(1 / stretched))
    for artist in artists:
        # A scatter places its dots by offsets, and its dots have sizes in points of their own.
        by_offsets = getattr(artist, "get_offset_transform", lambda: None)() == axes.transData
        place = artist.set_offset_transform if by_offsets else artist.set_transform
        place(from_page + axes.transData)
    corners = from_page.transform(np.transpose([axes.get_xlim(), axes.get_ylim()]))
    axes.set(xlim=corners[:, 0], ylim=corners[:, 1])
    axes.set_aspect(stretched[1] / stretched[0])
