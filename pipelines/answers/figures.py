"""Figures of matplotlib (the `plot` extra) as files: the same bytes for the same figure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipelines.formats.output_file import check_folder


def new_figure(path: str | os.PathLike[str], **options: Any) -> Any:
    """A figure to be written to `path`; `options` are those of ``matplotlib.figure.Figure``.

    Raises
    ------
    ImportError
        Matplotlib is missing; the message says how to install it.
    ValueError
        The suffix of `path` is not that of a picture.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'tilepath[plot]'") from error

    figure = Figure(dpi=150, **options)
    known = FigureCanvasAgg(figure).get_supported_filetypes()
    if Path(path).suffix.lower().removeprefix(".") not in known:
        raise ValueError(
            f"{path}: pictures end in .svg, .png or .pdf (graphs also in .dot); choose one of these suffixes"
        )
    check_folder(path)
    return figure


def save_figure(figure: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a figure, without the date and with names that do not change from run to run."""
    from matplotlib import rc_context

    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "tilepath", "path.snap": False}):
        figure.savefig(path, metadata=dates.get(Path(path).suffix.lower()), **options)
