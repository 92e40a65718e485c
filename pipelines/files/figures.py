"""Write figures of matplotlib (the `plot` extra) to files; equal figures give equal bytes."""

from __future__ import annotations

import base64
import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gpuops.extras import install
from pipelines.files.output_file import check_free, whole_file
from pipelines.stores.schema import counted
from pipelines.stores.units import is_time, symbol_of

MOST_DPI = 1200
SUFFIXES = (".svg", ".png", ".pdf")
IMAGE = re.compile(r"(data:image/png;base64,\s*)([A-Za-z0-9+/=\s]+)")  # within an SVG file
LARGE = 100_000  # least length of the text of an image that gets a palette


@contextmanager
def figure_file(
    path: str | os.PathLike[str] | None, overwrite: bool, *, tight: bool = False, dpi: int | None = None, **options: Any
) -> Iterator[Any]:
    """Return a context with a new figure, which is written to `path` when the block ends; without a path it is not.

    A notebook shows the figure, even if pyplot has not been imported. The file is written whole or not at all, and
    contains no date. One warning reports all characters that the font does not have.

    Parameters
    ----------
    overwrite : replace `path` if it exists
    tight : crop the page to the drawing
    dpi : pixels per inch, by default 150
    options : keyword arguments of ``matplotlib.figure.Figure``

    Raises
    ------
    ImportError
        Matplotlib is missing; the message says how to install it.
    ValueError
        The suffix of `path` is not a format of pictures.
    FileExistsError
        `path` exists, and `overwrite` is False.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        new_figure = figure_class(tight, dpi)
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: {install('plot')}") from error

    if dpi is not None and not 10 <= dpi <= MOST_DPI:
        raise ValueError(f"dpi (--dpi) is {dpi}; give 10 to {MOST_DPI:,} pixels per inch")
    figure = new_figure(dpi=dpi or 150, **options)
    if path is None:
        FigureCanvasAgg(figure)
        yield figure
        return
    suffix = Path(path).suffix.lower()
    FigureCanvasAgg(figure)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: pictures end in .svg, .png or .pdf (graphs also in .dot, maps in .html); choose one of them"
        )
    check_free(path, overwrite)
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    # Without a salt, names in an SVG file would change from run to run.
    with _missing_glyphs(), rc_context({"svg.hashsalt": "tilepath", "path.snap": False}):
        yield figure
        with whole_file(path) as partial:
            figure.savefig(partial, format=suffix.removeprefix("."), metadata=dates.get(suffix))
            if suffix == ".svg":
                partial.write_text(IMAGE.sub(_with_palette, partial.read_text(encoding="utf-8")), encoding="utf-8")


def _with_palette(image: re.Match[str]) -> str:
    """Return an image of an SVG file with a palette, which takes a quarter of the bytes of one without."""
    from PIL import Image  # which matplotlib needs

    if len(image[2]) < LARGE:
        return image[0]
    smaller = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(image[2]))) as pixels:
        pixels.convert("RGBA").quantize(256, method=Image.Quantize.FASTOCTREE).save(smaller, "png", optimize=True)
    return image[1] + base64.b64encode(smaller.getvalue()).decode()


def figure_class(tight: bool, dpi: int | None = None) -> Any:
    """Return a class of figures that notebooks show, cropped to the drawing if `tight`, in that resolution."""
    from matplotlib.figure import Figure

    defaults: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.1} if tight else {}
    if dpi is not None:
        defaults["dpi"] = dpi

    class NotebookFigure(Figure):
        def savefig(self, fname: Any, **options: Any) -> None:
            super().savefig(fname, **defaults | options)

        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png")
            return image.getvalue()

    return NotebookFigure


def shortened(text: str, most: int) -> str:
    """Return `text` on one line, in at most `most` letters, without its middle: names often differ at the end."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= most else f"{text[: most - 1 - most // 2]}\u2026{text[-(most // 2) :]}"


def title_of_distances(unit: str) -> str:
    """Return the label of a scale of distances: "travel time" if `unit` is a unit of time, else "distance".

    >>> title_of_distances("s"), title_of_distances("km"), title_of_distances("")
    ('travel time [s]', 'distance [km]', 'distance')
    """
    quantity = "travel time" if is_time(unit) else "distance"
    return quantity + (f" [{unit}]" if unit else "")


WORDS = {"ms": "milliseconds", "min": "minutes", "mins": "minutes", "h": "hours", "m": "metres", "km": "kilometres"}
LONG = 180  # a scale of this many seconds or more is in minutes


def in_words(unit: str, source: str, values: np.ndarray) -> tuple[float, str]:
    """Return a factor for distances from a source, and the label of their scale in words: long times are in minutes.

    >>> in_words("s", "a", np.array([0, 600.0])), in_words("km", "a", np.array([2.0]))
    ((0.016666666666666666, 'Travel time from a, minutes'), (1.0, 'Distance from a, kilometres'))
    """
    quantity = "Travel time" if is_time(unit) else "Distance"
    factor, word = 1.0, WORDS.get(unit, unit)
    if symbol_of(unit) == "s":
        known = values[np.isfinite(values)]
        factor, word = (1 / 60, "minutes") if known.size and known.max() > LONG else (1.0, "seconds")
    return factor, f"{quantity} from {source}" + (f", {word}" if word else "")


@contextmanager
def _missing_glyphs() -> Iterator[None]:
    """Replace matplotlib's warnings, one for each character that a font lacks, by a single warning with a cure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", r"Glyph \d+ .* missing from font", UserWarning)
        yield
    missing: dict[str, str] = {}
    for warning in caught:
        if found := re.match(r"Glyph (\d+) .* missing from font\(s\) (.*)\.", str(warning.message)):
            missing[chr(int(found[1]))] = found[2]
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing:
        first, font = next(iter(missing.items()))
        warnings.warn(
            f"drawn as boxes: {counted(len(missing), 'character')} such as {first!r}, which the font {font} lacks; "
            "set font.family in the file matplotlibrc to a font that has them",
            stacklevel=3,
        )
