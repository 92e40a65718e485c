"""Pictures of the estimators of self-organizing maps: the kinds of `tilepath som plot`, from arrays in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pipelines.files.figures import figure_class
from pipelines.som import cells
from pipelines.som.classes import count_votes, known_labels
from pipelines.som.labelled_pictures import NamedVote
from pipelines.som.pictures import (
    KINDS,
    OF_HITS,
    OF_LABELS,
    OF_SAMPLES,
    TITLES,
    MapView,
    check_style,
    draw_cells_of,
    draw_map,
    draw_plane,
    plain_text,
)

ON_FIGURES = ("planes", "tree", "curve")


def _needed(kind: str, X: Any, y: Any) -> str | None:
    """Return the attribute of the estimator that a picture needs in addition to the codebook."""
    if kind == "clusters":
        return "unit_clusters_"
    return None if X is not None else "labels_" if y is not None else "hits_" if kind in OF_HITS else None


def plot(
    som: Any,
    kind: str,
    column: Any,
    axes: Any,
    X: Any,
    y: Any,
    text: bool,
    title: Any,
    scaled: bool,
    size: tuple[float, float] | None,
    cmap: str | None,
) -> Any:
    """Draw a fitted map, as `tilepath.sklearn.SelfOrganizingMap.plot` describes."""
    cure = "call cluster first" if kind == "clusters" else "pass the samples as X"
    check_is_fitted(som, _needed(kind, X, y), msg=f"This %(name)s lacks what the picture shows; {cure}")
    if kind not in (*KINDS, "plane"):
        raise ValueError(f"there is no picture {kind!r}; choose {', '.join([*KINDS, 'plane'])}")
    if kind in OF_SAMPLES and X is None:
        raise ValueError(f"{kind} shows the density of samples; pass them as X")
    if axes is not None and kind in ON_FIGURES:
        raise ValueError(f"{kind} needs a figure of its own; leave out axes")
    check_style(kind, scaled, size, cmap)
    if axes is not None and size is not None:
        raise ValueError("size is for a new figure; leave out axes or size")
    title = TITLES.get(kind) if title is None else title
    samples = som._take(X).values if kind in OF_SAMPLES else None
    units, hits = getattr(som, "labels_", None), getattr(som, "hits_", None)
    if X is not None and kind in (*OF_HITS, *OF_LABELS):
        units = som._units(X)
        hits = np.bincount(units, minlength=som.grid_.units)
    names = list(map(str, som._columns()))
    chosen: list[int] = []
    if kind == "planes" and column is not None:
        chosen = [_column(som, each) for each in (column if isinstance(column, list | tuple) else [column])]
    view = MapView(
        grid=som.grid_,
        metric=som._metric(),
        units=som.codebook_,
        columns=names,
        values=som.codebook_ if scaled else som._in_units_of_source(som.codebook_),
        scales=som._scales() if scaled else (),
        hits=None if hits is None else hits.ravel(),
        errors=som.quantization_errors_,
        sigmas=som._past_sigmas(),
        voted=_voted(som, kind, units, y),
        samples=samples,
        clusters=getattr(som, "unit_clusters_", None),
        size=size,
        cmap=cmap,
    )
    if axes is None:
        from matplotlib import pyplot

        if kind in ON_FIGURES:
            figure = pyplot.figure(FigureClass=figure_class(tight=True))
            draw_map(figure, view, kind, title, chosen, text)
            return figure
        # Inches of the cells, with room for the title, and for a colour bar or a legend on the right.
        width, height = cells.picture_size(som.grid_, *(size or (5.0, 4.4)))
        whole_x, whole_y = width + 1.9, height + 0.55
        figure = pyplot.figure(figsize=(whole_x, whole_y), FigureClass=figure_class(tight=True))
        axes = figure.add_axes((0.15 / whole_x, 0.15 / whole_y, width / whole_x, height / whole_y))
    if kind == "plane":
        number = _column(som, column)
        if title is None:
            title = names[number] if hasattr(som, "feature_names_in_") else f"column {number}"
        draw_plane(axes, view, number, title)
    else:
        draw_cells_of(axes, view, kind, title, text)
    plain_text(axes.figure)
    return axes


def _column(som: Any, column: Any) -> int:
    named = list(getattr(som, "feature_names_in_", []))
    column = 0 if column is None else column
    if column not in (named if isinstance(column, str) else range(som.n_features_in_)):
        raise ValueError(f"there is no column {column!r}; X had {', '.join(named) or som.n_features_in_}")
    return named.index(column) if isinstance(column, str) else int(column)


def _voted(som: Any, kind: str, units: np.ndarray | None, y: Any) -> NamedVote | None:
    """Return the vote of the labels `y` of samples in `units`, or of the classes that a classifier has learnt."""
    if y is None and hasattr(som, "vote_"):
        return NamedVote(som.vote_, [str(name) for name in som.classes_]) if kind in (*OF_LABELS, "tree") else None
    if y is None:
        if kind in OF_LABELS:
            raise ValueError(f"{kind} show the labels of the samples; pass them as y")
        return None
    y = np.asarray(y)
    assert units is not None
    if y.shape != units.shape:
        raise ValueError(f"y has the shape {y.shape}; give the label of each of the {len(units):,} samples of fit or X")
    known, codes = known_labels(y), np.full(len(y), -1)
    labels, codes[known] = np.unique(y[known], return_inverse=True)
    return NamedVote(count_votes(units, codes, som.grid_.units, len(labels)), list(map(str, labels)))
