"""How stores show themselves: their first rows as text, and in a notebook a picture or a table of their first rows.

Only the first rows are read, however large the graph is. The text of a damaged store says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.stores.neighbours import NamedRows

ROWS = 6  # rows shown of a graph
NEIGHBOURS = 8  # neighbours shown in a row
LETTERS = 24  # letters shown of a name or a value

# The function that draws a small graph as SVG, or returns None. No store knows how to draw: `pipelines` enters it.
PICTURES: dict[str, Callable[[Any], str | None]] = {}

Row = tuple[str, list[str], int]  # the name of a vertex, the names of its first neighbours, and the number of others


def text_of(graph: NamedRows, title: str) -> str:
    """Return the title and the first rows of a graph as lines of text; never raises an error."""
    try:
        lines = [_line(*row) for row in _first_rows(graph)]
        lines += [f"and {graph.n - ROWS:,} more"] if graph.n > ROWS else []
    except Exception as error:  # a text is for looking into faults, too
        from pipelines.stores.schema import brief  # imports zarr, which `import pipelines` does without

        lines = [f"rows cannot be read: {brief(error)}"]
    return "\n".join([f"<{title}>", *lines])


def html_of(graph: NamedRows, title: str) -> str:
    """Return a picture of a small graph as HTML; of a large graph, or without matplotlib, a table of the first rows."""
    try:
        if svg := PICTURES["svg"](graph) if "svg" in PICTURES else None:
            return f'<div style="overflow: auto">{svg}</div>'
        rows = _first_rows(graph)
    except (ValueError, OSError):  # the store is damaged; the text names the fault
        return f"<pre>{escape(text_of(graph, title))}</pre>"
    cells = [[_short(name), f"{len(heads) + more:,}", _list(heads, more)] for name, heads, more in rows]
    return html_table(title, [["vertex", "arcs", "neighbours"], *cells], max(0, graph.n - ROWS))


def html_table(title: str, rows: list[list[str]], more: int = 0, *, named: bool = False) -> str:
    """Return a table as HTML, whose first row is the head; `named` says whether the first column has names.

    `more` is the number of further rows, which are not shown.
    """
    lines = []
    for number, row in enumerate(rows):
        kinds = ("th" if not number or (named and not place) else "td" for place in range(len(row)))
        cells = (f"<{kind}>{escape(cell)}</{kind}>" for kind, cell in zip(kinds, row, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    rest = f"<p>and {more:,} more</p>" if more else ""
    return f"<p>{escape(title)}</p><table>{''.join(lines)}</table>{rest}"


def _first_rows(graph: NamedRows) -> list[Row]:
    starts = graph.indptr(0, min(ROWS, graph.n)).tolist()
    heads = [graph.indices(first, min(stop, first + NEIGHBOURS)).tolist() for first, stop in pairwise(starts)]
    names = iter(graph.names([vertex for vertex, row in enumerate(heads) for vertex in (vertex, *row)]))
    return [
        (next(names), [next(names) for _ in row], stop - first - len(row))
        for row, (first, stop) in zip(heads, pairwise(starts), strict=True)
    ]


def _line(name: str, heads: list[str], more: int) -> str:
    return f"{_short(name)} -> {_list(heads, more)}".rstrip()


def _list(heads: list[str], more: int) -> str:
    return ", ".join([*map(_short, heads), *([f"... {more:,} more"] if more else [])])


def _short(name: str) -> str:
    """Return a name on one line, in quotation marks if it is empty or could be mistaken for several names."""
    text = on_one_line(name)
    return f'"{text}"' if not text or "," in text or "->" in text else text


def on_one_line(text: str) -> str:
    """Return a text on one line, in at most `LETTERS` letters."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}\u2026"


def aligned(rows: list[list[str]]) -> list[str]:
    """Return a table of text as lines, with its columns aligned at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
