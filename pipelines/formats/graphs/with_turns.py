"""Write the arcs of a stream as a graph with turns: of a table, by angles, or by the restrictions of OpenStreetMap."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.formats.arc_sort import write_sorted
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.stores.graph import Graph
from pipelines.stores.place import hidden_folder
from pipelines.stores.schema import counted
from pipelines.turns.angles import AngleCostsLike, read_angle_costs
from pipelines.turns.table import TurnRows, TurnsLike, forbidden_turns, read_turns
from pipelines.turns.write import add_turns


def write_with_turns(
    path: str | os.PathLike[str],
    arcs: ArcStream,
    turns: TurnsLike | bool | None,
    angles: AngleCostsLike | None,
    simplify: bool,
    sorted_rows: bool,
    overwrite: bool,
    memory: int | None,
) -> Graph:
    """Write the arcs of a stream as a graph with turns, by way of a graph without turns beside it."""
    if turns is True and arcs.turns is None:
        raise FormatError(f"{arcs.source}: has no restrictions of turns; give a table of turns (turns, --turns TABLE)")
    if not sorted_rows:
        raise ValueError("turns need sorted rows; leave out sorted_rows=False (--unsorted)")
    beside = Path(path).absolute().parent
    beside.mkdir(parents=True, exist_ok=True)
    with hidden_folder(".turns-", beside) as folder:
        plain = write_sorted(Path(folder, "graph"), arcs, simplify=simplify, memory=memory)
        try:
            rows = None if turns is None else _rows_of_turns(turns, arcs, plain, simplify)
            by_angles = None if angles is None else read_angle_costs(angles, plain)
            return add_turns(plain, path, rows, by_angles, source=arcs.source, overwrite=overwrite)
        except ValueError as error:
            if plain.path not in str(error):
                raise
            raise FormatError(str(error).replace(plain.path, arcs.source)) from error


def _rows_of_turns(turns: TurnsLike | bool, arcs: ArcStream, plain: Graph, simplify: bool) -> TurnRows:
    if turns is not True:
        return read_turns(turns, plain)
    assert arcs.turns is not None
    rows = forbidden_turns(arcs.source, arcs.turns(simplify, True), plain)
    arcs.remarks.append(f"{arcs.source}: forbids {counted(len(rows.vias), 'turn')}")
    return rows


def unobeyed_restrictions(arcs: ArcStream, turns: TurnsLike | bool | None) -> list[str]:
    """Return a remark on restrictions of turns that the store will lack, if there are any."""
    if not arcs.turn_restrictions or turns is True:
        return []
    found = counted(arcs.turn_restrictions, "turn restriction")
    return [f"{arcs.source}: has {found}, which the store does not obey; to obey them, use turns=True (--turns)"]
