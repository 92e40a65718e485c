"""Write a graph with turns: a graph store in which turns are forbidden or cost something."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpuops.errors import WeightRangeError
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import SCHEMA, Graph, open_graph
from pipelines.stores.graph_writer import new_graph
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.turns.angles import AngleCosts, AngleCostsLike, directions, read_angle_costs
from pipelines.turns.costs import FINE, NO_WAY_IN, TurnCosts
from pipelines.turns.split import ADDED, Split, split_junctions
from pipelines.turns.table import ANY, TurnRows, TurnsLike, read_turns
from pipelines.workers.capacity import Needs, this_process

ARC_BYTES, VERTEX_BYTES = 120, 40  # memory for an arc and for a vertex of the graph with turns, as measured


def write_turns(
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    turns: TurnsLike | None = None,
    *,
    angles: AngleCostsLike | None = None,
    overwrite: bool = False,
) -> Graph:
    """Write a graph in which turns are forbidden or cost something to a graph store, and return the store, opened.

    All commands and functions take the new graph as any other. A vertex where a turn costs something or is forbidden
    becomes a junction: it stays the vertex of its name, where paths begin and end at no cost, and is closed, so that no
    path passes through it. Paths lead through vertices that are added, one for each arc into the junction and each arc
    out of it; where a path is shown, the junction stands for them. The new graph is directed.

    Parameters
    ----------
    graph : Graph, or path of a graph store
        If it has several weights, turns cost nothing in the others than those chosen.
    out : path of the new store
    turns : path of a table (.csv, .tsv, .csv.gz, .tsv.gz, .parquet), or data frame or table, optional
        The columns `from`, `via` and `to` name three vertices. `cost` is a number of 0 or more in the unit of the
        weights; or "no", which forbids the turn; or "only", which forbids all other turns at `via` after the arc from
        `from` (several rows may allow a turn each). An empty `from` or `to` stands for every vertex: a row with both
        empty is the cost of a traffic light at `via`. If arcs are parallel, the optional columns `from_arc` and
        `to_arc` choose one of them by its position in ``graph.indices()``; otherwise a row holds for all of them. If
        several rows hold for a turn, their costs are added.
    angles : "usual", or path of a table, or data frame or table, optional
        Costs by angles, in the unit of the weights, which are added to the costs of `turns`. The columns are `turn`, a
        word for the reader; `least` and `most`, the angles of the turn in degrees from straight ahead, from -180 to
        180, positive to the left; and `cost`, a number or "no". The row whose `turn` is "u-turn" has no angles: it is
        the cost of a way back to the vertex that the path came from. At a dead end, a U-turn is not forbidden. Where
        fewer than three roads meet, only U-turns cost something. "usual" is a table for cars that drive on the right:
        7 s to the left, 3 s to the right (45 degrees and more), and 20 s for a U-turn; the weights must be times.
    overwrite : replace an existing graph store at `out`

    Raises
    ------
    ValueError
        Neither `turns` nor `angles` is given; or a row of a table is wrong: the message names the row, counted from 1
        without the header.
    StoreError
        `out` exists, or is the graph itself; the graph has turns already; or the disk is full.
    WeightRangeError
        A cost does not fit the dtype of the weights.
    DoesNotFitError
        The arcs do not fit in memory.

    Examples
    --------
    >>> import pandas
    >>> turns = pandas.DataFrame({"from": ["Rome"], "via": ["Pisa"], "to": ["Genoa"], "cost": ["no"]})
    >>> turned = tilepath.write_turns(graph, "turned.zarr", turns)
    >>> tilepath.distances_between(turned, ["Rome"], ["Genoa"]).item()
    720
    """
    graph = open_graph(graph)
    if turns is None and angles is None:
        raise ValueError("give a table of turns (turns, --turns), costs by angles (angles, --angles), or both")
    if "junctions" in graph.optional:
        raise StoreError(f"{graph.path}: has turns already; make all turns from the graph without turns at once")
    refuse_existing(out, SCHEMA, overwrite)
    refuse_inputs(out, [graph.path])
    rows = None if turns is None else read_turns(turns, graph)
    by_angles = None if angles is None else read_angle_costs(angles, graph)
    return add_turns(graph, out, rows, by_angles, source=f"{Path(graph.path).name} with turns", overwrite=overwrite)


def add_turns(
    graph: Graph,
    out: str | os.PathLike[str],
    rows: TurnRows | None,
    angles: AngleCosts | None,
    *,
    source: str,
    overwrite: bool = False,
) -> Graph:
    """Write a graph with turns, as `write_turns`, from tables that were read; `source` is text for `tilepath info`."""
    indptr, heads, through = graph.indptr(), graph.indices(), graph.through()
    if rows is not None:
        for row in np.flatnonzero(~through[rows.vias])[:1].tolist():
            name = graph.label(rows.vias[row])
            raise ValueError(f"{rows.where(row)}: no path passes through vertex {name}, which is closed; leave it out")
    chosen = np.unique(rows.vias) if angles is None and rows is not None else np.flatnonzero(through)
    _refuse_what_cannot_fit(graph, indptr, heads, chosen)
    free = TurnCosts.free(indptr, heads, chosen)
    if angles is not None:
        free.add_angles(indptr, heads, *directions(graph), angles)
    if rows is not None:
        found = free.add_rows(indptr, heads, rows)
        for row in np.flatnonzero(found != FINE)[:1].tolist():
            raise ValueError(_no_such_turn(graph, rows, row, way_in=found[row] == NO_WAY_IN))
    said = _of_u_turns(0.0 if angles is None else angles.u_turn, graph.weight_unit)
    return _write(graph, out, split_junctions(indptr, heads, free), f"{source}, {said}", overwrite)


def _of_u_turns(cost: float, unit: str) -> str:
    if cost == np.inf:
        return "U-turns forbidden except at dead ends"
    return f"a U-turn costs {cost:g} {unit}".rstrip() if cost else "U-turns allowed"


def _refuse_what_cannot_fit(graph: Graph, indptr: np.ndarray, heads: np.ndarray, chosen: np.ndarray) -> None:
    entering, leaving = np.bincount(heads, minlength=graph.n)[chosen], np.diff(indptr)[chosen]
    turns, added = int((entering * leaving).sum()), int((entering + leaving).sum())
    needs = Needs((ARC_BYTES * (graph.m + turns + added) + VERTEX_BYTES * (graph.n + added),))
    needs.refuse_memory(f"{graph.path}: {turns:,} turns", this_process(), "Use a machine with more memory")


def _no_such_turn(graph: Graph, rows: TurnRows, row: int, *, way_in: bool) -> str:
    """Return the error for a row whose first arc (`way_in`) or second arc does not exist."""
    ends, arcs = ((rows.tails, rows.vias), rows.entering) if way_in else ((rows.vias, rows.heads), rows.leaving)
    (tail, head), arc, where = (int(each[row]) for each in ends), int(arcs[row]), rows.where(row)
    if arc != ANY:
        names = [f"{word} vertex {graph.label(v)}" for word, v in (("from", tail), ("to", head)) if v != ANY]
        return f"{where}: arc {arc} does not lead {' '.join(names)}; give the number of an arc between the vertices"
    if tail == ANY or head == ANY:
        name = f"leads to vertex {graph.label(head)}" if tail == ANY else f"leaves vertex {graph.label(tail)}"
        return f"{where}: no arc {name}; leave the row out"
    names = graph.names([tail, head])
    return f"{where}: no arc leads from vertex {names[0]} to vertex {names[1]}; name three vertices along two arcs"


def _write(graph: Graph, out: str | os.PathLike[str], split: Split, source: str, overwrite: bool) -> Graph:
    junctions, added = split.junctions, len(split.owners)
    order = np.lexsort((split.heads, split.tails))
    roads = split.roads[order]
    weights = _weights(graph, split.costs[order], roads)
    through = np.concatenate([graph.through(), np.ones(added, bool)])
    places = junctions.of(np.arange(graph.n, graph.n + added))
    through[places] = False
    labels, coordinates, lines, classes = graph.labels(), graph.coordinates(), graph.lines(), graph.classes()
    if lines is not None:
        lines = replace(lines, of_arcs=np.where(roads == ADDED, 0, lines.of_arcs[roads]))
    if classes is not None:
        classes = replace(classes, of_arcs=np.where(roads == ADDED, -1, classes.of_arcs[roads]))
    facts: dict[str, Any] = {"weight_unit": graph.weight_unit, "weight_name": graph.weight_name}
    facts |= {"weight_dtype": weights.dtype, "source": source, "overwrite": overwrite}
    with new_graph(out, n=graph.n + added, m=len(order), **facts) as writer:
        writer.append(split.tails[order], split.heads[order], weights)
        writer.annotate(
            labels=None if labels is None else _labels(graph, labels, split),
            integer_labels=graph.integer_labels,
            coordinates=None if coordinates is None else np.concatenate([coordinates, coordinates[places]]),
            through=None if through.all() else through,
            junctions=junctions.codes,
            lines=lines,
            classes=classes,
            crs=graph.crs,
            attribution=graph.attribution,
        )
        for each in graph.choices:
            if each.name and each.array != graph.weight_array:
                other = graph.weighted_by(each.name).weights()
                writer.add_weights(each.name, np.where(roads == ADDED, other.dtype.type(0), other[roads]), each.unit)
    return open_graph(out)


def _weights(graph: Graph, costs: np.ndarray, roads: np.ndarray) -> np.ndarray:
    """Return the weights of all arcs: integers if the weights of roads and all costs are integers, else floats."""
    own = graph.weights()
    if own.dtype.kind != "f" and (costs != np.floor(costs)).any():
        own = own.astype(np.float64)
    if own.dtype.kind != "f" and costs.max(initial=0) > np.iinfo(own.dtype).max:
        raise WeightRangeError(
            f"a cost of {costs.max():g} does not fit the weights, which are {own.dtype}; give a smaller cost, or `no`"
            " to forbid the turn"
        )
    found = costs.astype(own.dtype)
    found[roads != ADDED] = own[roads[roads != ADDED]]
    return found


def _labels(graph: Graph, labels: np.ndarray, split: Split) -> np.ndarray:
    """Return the labels of all vertices; those of the added vertices say where their arc comes from, or leads to."""
    indptr, heads, owners = graph.indptr(), graph.indices(), split.owners
    tails = np.searchsorted(indptr, owners, side="right") - 1
    entering = split.junctions.codes[graph.n :] >= 0
    ends = [labels[each].tolist() for each in (tails, heads[owners])]
    added: list[str] = [
        f"{head} from {tail}" if arrival else f"{tail} to {head}"
        for arrival, tail, head in zip(entering.tolist(), *ends, strict=True)
    ]
    seen: dict[str, Any] = dict.fromkeys(labels.tolist())
    for place, (name, arc) in enumerate(zip(added, owners.tolist(), strict=True)):
        while added[place] in seen:  # an arc that is parallel to another
            added[place] = f"{added[place]}, arc {arc}" if added[place] == name else f"{added[place]}'"
        seen[added[place]] = None
    return np.array([*labels.tolist(), *added], object)
