"""Read TNTP road networks (`*_net.tntp`) of Transportation Networks for Research, and the positions of their nodes.

    <NUMBER OF NODES> 416
    <FIRST THRU NODE> 39
    <NUMBER OF LINKS> 914
    <END OF METADATA>
    ~ init_node term_node capacity length free_flow_time b power speed toll link_type ;
      1 117 9000 5280 1.090458488 0.15 4 4842 0 1 ;

`*_node.tntp` has a line `NODE X Y ;` for each node, below a header.

Nodes are numbered from 1; the numbers become labels. Nodes with smaller numbers than the first through node are
centroids of zones: trips begin and end there, but no path passes through a centroid. The store's `through` mask marks
these nodes as closed.
https://github.com/bstabler/TransportationNetworks
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.graphs.columns import choose_columns, listed
from pipelines.formats.graphs.dimacs import announced_arcs, positions
from pipelines.formats.graphs.text import NUMBER, SKIP, VERTEX, Layout
from pipelines.formats.text_file import BLANKS, TextFile, count

COLUMNS = "init_node term_node capacity length free_flow_time b power speed toll link_type".split()


@contextmanager
def read_tntp(source: str | os.PathLike[str], weight: str = "free_flow_time") -> Iterator[ArcStream]:
    """Yield the links of a TNTP network; `weight` names the column of weights. The header gives the column order."""
    with TextFile(source) as text:
        weight = weight.lower()
        metadata, remarks = _metadata(text)
        (n, _), (first_through, _), (links, links_line) = (
            _number(text, metadata, key) for key in ("NUMBER OF NODES", "FIRST THRU NODE", "NUMBER OF LINKS")
        )
        names = _column_names(text, remarks)
        if names.count(weight) != 1:
            several = "several columns" if weight in names else "no column"
            raise text.error(f"{several} {weight!r}; choose the weight (--weight) among {listed(names[2:])}")
        chosen = choose_columns(text.path, len(names), names, None, weight)
        kinds = [SKIP] * len(names)
        kinds[chosen.tail] = kinds[chosen.head] = VERTEX
        kinds[names.index(weight)] = NUMBER
        layout = Layout(" ".join(names) + " ;", tuple(kinds), blanks=";", comments="~", n=n)
        yield ArcStream(
            announced_arcs(text, layout, links, links_line, (chosen.tail, chosen.head, names.index(weight))),
            n=n,
            labels=range(1, n + 1),
            through=None if first_through <= 1 else lambda n: np.arange(1, n + 1) >= first_through,
            weight_unit=weight,
            remarks=[f"{text.path}: {chosen.described(names)}"],
        )


def read_nodes(source: str | os.PathLike[str], n: int) -> np.ndarray:
    """Return the positions of n nodes from a `_node.tntp` file, float64 (n, 2); NaN for nodes that the file lacks."""
    with TextFile(source) as text:
        if (lines := text.peek(1)) and not re.match(r"\s*\d", lines[0]):
            text.line()  # the header
        return positions(text, Layout("NODE X Y ;", (VERTEX, NUMBER, NUMBER), blanks=";", comments="~", n=n), n)


def _metadata(text: TextFile) -> tuple[dict[str, tuple[str, int]], list[str]]:
    """Return value and line number of each key of the metadata, and the lines in between, which begin with `~`."""
    metadata: dict[str, tuple[str, int]] = {}
    remarks = []
    while (line := text.line()) is not None:
        match = re.match(r"\s*<([^>]*)>([^;~]*)", line)
        if match is None:
            if line.strip(BLANKS)[:1] not in ("", "~"):
                raise text.error(f"{line.strip()[:80]!r} comes before `<END OF METADATA>`; add that line")
            remarks.append(line)
            continue
        key, value = match[1].strip().upper(), match[2].strip()
        if key == "END OF METADATA":
            return metadata, remarks
        metadata[key] = value, text.number
    raise text.error("there is no `<END OF METADATA>`; check that it is a complete TNTP network (*_net.tntp)")


def _number(text: TextFile, metadata: dict[str, tuple[str, int]], key: str) -> tuple[int, int]:
    value, line = metadata.get(key, ("", text.number))
    if not value:
        raise text.error(f"`<{key}>` is missing in the metadata; add it (without zones the first through node is 1)")
    number = count(value)
    if number is None:
        raise text.error(f"`<{key}>` is {value[:80]!r}, not a whole number or too large; correct it", line)
    return number, line


def _column_names(text: TextFile, remarks: list[str]) -> list[str]:
    """Return the names of the columns.

    They are the words of the last `~` line before the first link that has as many words as the link has fields; else
    the names in `COLUMNS`.
    """
    while (lines := text.peek(1)) and lines[0].strip(BLANKS)[:1] in ("", "~"):
        remarks.append(lines[0])
        text.line()
    width = len(lines[0].replace(";", " ").split()) if lines else len(COLUMNS)
    headers = [names for names in map(_names, remarks) if names]
    fitting = [names for names in headers if len(names) == width]
    if fitting:
        return fitting[-1]
    if width == len(COLUMNS):
        return COLUMNS
    raise text.error(
        f"the link has {width} fields, but its header {len(headers[-1]) if headers else 0}; name them all on a line "
        f"`~ {' '.join(COLUMNS)} ;`",
        text.number + 1,
    )


def _names(remark: str) -> list[str]:
    """Return the words of a `~` line; if the line is the header, these words are column names."""
    line = remark.replace("~", " ").replace(";", " ").strip()
    words = re.split(r"\s*\t\s*", line) if "\t" in line else line.split()
    return [re.sub(r"\s*\(.*\)", "", word).strip().lower().replace(" ", "_") for word in words if word]
