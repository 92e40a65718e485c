"""TNTP road networks (`*_net.tntp`) of Transportation Networks for Research.

    <NUMBER OF NODES> 416
    <FIRST THRU NODE> 39
    <NUMBER OF LINKS> 914
    <END OF METADATA>
    ~ init_node term_node capacity length free_flow_time b power speed toll link_type ;
      1 117 9000 5280 1.090458488 0.15 4 4842 0 1 ;

Nodes are numbered from 1; the numbers become labels. Nodes below the first through node are centroids of zones: trips
begin and end there, and no path passes through one. They are closed in the store's `through` mask.
https://github.com/bstabler/TransportationNetworks
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pipelines.arc_sort import ArcStream, Piece
from pipelines.formats.dimacs import check_count
from pipelines.formats.text import NUMBER, SKIP, VERTEX, Layout, read_table
from pipelines.formats.text_file import TextFile

COLUMNS = "init_node term_node capacity length free_flow_time b power speed toll link_type".split()


@contextmanager
def read_tntp(source: str | os.PathLike[str], weight: str = "free_flow_time") -> Iterator[ArcStream]:
    """The links of a TNTP network; `weight` names the column of weights."""
    with TextFile(source) as text:
        facts, weight = _metadata(text), weight.lower()
        (n, _), (first_through, _), (links, links_line) = (
            _fact(text, facts, key) for key in ("NUMBER OF NODES", "FIRST THRU NODE", "NUMBER OF LINKS")
        )
        names = _column_names(text)
        if weight not in names[2:]:
            raise text.error(f"no column {weight!r}; choose the weight (--weight) among {', '.join(names[2:])}")
        column = names.index(weight, 2)
        kinds = tuple([VERTEX, VERTEX] + [NUMBER if i == column else SKIP for i in range(2, len(names))])
        layout = Layout(" ".join(names) + " ;", kinds, blanks=";", comments="~", n=n)
        through = np.arange(1, n + 1) >= first_through
        yield ArcStream(
            _pieces(text, layout, column, links, links_line),
            n=n,
            labels=map(str, range(1, n + 1)),
            through=None if through.all() else through,
            weight_unit=weight,
        )


def _metadata(text: TextFile) -> dict[str, tuple[str, int]]:
    """Key -> value and line number, up to the end of the metadata."""
    facts: dict[str, tuple[str, int]] = {}
    while (line := text.line()) is not None:
        match = re.match(r"\s*<([^>]*)>([^;~]*)", line)
        if match is None:
            if line.strip() and not line.lstrip().startswith("~"):
                raise text.error(f"{line.strip()[:80]!r} stands before `<END OF METADATA>`; add that line")
            continue
        key, value = match[1].strip().upper(), match[2].strip()
        if key == "END OF METADATA":
            return facts
        facts[key] = value, text.number
    raise text.error("there is no `<END OF METADATA>`; is it a network in TNTP format (*_net.tntp), and whole?")


def _fact(text: TextFile, facts: dict[str, tuple[str, int]], key: str) -> tuple[int, int]:
    value, line = facts.get(key, ("", text.number))
    if not value:
        raise text.error(f"the metadata lack `<{key}>`; add it (without zones the first through node is 1)")
    if not value.isdecimal():
        raise text.error(f"`<{key}>` is {value!r}, not a whole number; correct it", line)
    return int(value), line


def _column_names(text: TextFile) -> list[str]:
    """Names of the columns: the last `~` line before the first link, or by the format's custom where it has none."""
    names: list[str] = []
    while (lines := text.peek(1)) and (not lines[0].strip() or lines[0].lstrip().startswith("~")):
        line = lines[0].replace("~", " ").replace(";", " ").strip()
        words = re.split(r"\s*\t\s*", line) if "\t" in line else line.split()
        if line:
            names = [re.sub(r"\s*\(.*\)", "", word).strip().lower().replace(" ", "_") for word in words]
        text.line()
    width = len(lines[0].replace(";", " ").split()) if lines else len(COLUMNS)
    if len(names) == width:
        return names
    if width == len(COLUMNS):
        return COLUMNS
    raise text.error(
        f"the link has {width} fields, its header {len(names)}; name them all on a line `~ {' '.join(COLUMNS)} ;`",
        text.number + 1,
    )


def _pieces(text: TextFile, layout: Layout, column: int, announced: int, header: int) -> Iterator[Piece]:
    count = 0
    for columns in read_table(text, layout):
        count += len(columns[0])
        yield columns[0], columns[1], columns[column]
    check_count(text, count, announced, header)
