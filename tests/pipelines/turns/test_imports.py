"""Turns at an import and by the command line: tables, angles, and the restrictions of OpenStreetMap."""

import errno
import os

import numpy as np
import pytest
from openstreetmap import write

from pipelines import distances_between, import_graph, od, open_graph, shortest_path
from pipelines.formats.graphs import FormatError

# The ways 13 and 14 become one arc by node 5, which is parallel to way 11.
TOWN = {1: (0, 0), 2: (1, 0), 3: (2, 0), 4: (1, 1), 5: (1, -1), 6: (3, 0)}
TOWN = {id_: (13 + x / 1000, 52 + y / 1000) for id_, (x, y) in TOWN.items()}
WAYS = {10: [1, 2], 11: [2, 3], 12: [2, 4], 13: [2, 5], 14: [5, 3], 15: [3, 6]}
STREETS = "source,target,seconds\na,b,1\nb,c,2\nb,d,5\nd,c,1\nb,e,4\n"


def restriction(kind, tail, via, head):
    return 1, [("w", tail, "from"), (*via, "via"), ("w", head, "to")], {"type": "restriction", "restriction": kind}


@pytest.fixture
def town(tmp_path):
    ways = [(id_, nodes, {"highway": "residential"}) for id_, nodes in WAYS.items()]
    relations = [
        restriction("no_straight_on", 10, ("n", 2), 11),
        restriction("only_right_turn", 12, ("n", 2), 10),
        restriction("no_left_turn", 10, ("w", 11), 14),
    ]
    return write(tmp_path / "town.osm", TOWN, ways, relations)


def route(graph, source, target):
    return graph.names(shortest_path(graph, source, target).vertices)


def test_restrictions_of_openstreetmap(town, tmp_path):
    said, unsaid = [], []
    graph = import_graph(town, tmp_path / "t", turns=True, report=said.append)
    plain = import_graph(town, tmp_path / "g", report=unsaid.append)
    obey = "has 3 turn restrictions, which the store does not obey; to obey them, use turns=True (--turns)"
    assert unsaid[-1] == f"{town}: {obey}"
    assert obey not in "".join(said)
    assert route(graph, 1, 3) == ["1", "2", "3"]
    assert route(graph, 4, 3) == ["4", "2", "1", "2", "3"]
    arcs = plain.indptr()[1] + [1, 2]  # from 2 to 3, by way 11 and by node 5
    for weights in None, "length":
        own, turned = (each if weights is None else each.weighted_by(weights) for each in (plain, graph))
        short, by_5 = own.weights()[arcs]
        assert by_5 > 2 * short
        (to_2, by_11), (_, from_2) = distances_between(own, [1, 2], [2, 3])
        assert (by_11, from_2) == (to_2 + short, short)
        assert distances_between(turned, [1, 2], [3]).tolist() == [[to_2 + by_5], [short]]
    assert said[-2:] == [
        f"{town}: left out 1 restriction of turns, over several ways or without a member",
        f"{town}: forbids 4 turns",  # to 11; and from 12 to 11, 12 and 13
    ]
    assert graph.source == f"{town}, U-turns allowed"
    assert graph.attribution == plain.attribution
    found = od(graph, [1], [3], also="length")
    assert found["length"].tolist() == [to_2 + by_5]
    assert "the digest of the graph" in graph.verify().checked


def test_angles_at_an_import(town, tmp_path):
    graph = import_graph(town, tmp_path / "t", angles="usual")
    by_2 = distances_between(graph, [1, 2], [2, 3, 4])
    np.testing.assert_allclose(by_2[0, 1:] - (by_2[0, 0] + by_2[1, 1:]), [0, 7], atol=1e-9)


def test_a_table_at_an_import_and_by_the_command(tilepath, tmp_path):
    (tmp_path / "e.csv").write_text(STREETS)
    (tmp_path / "t.csv").write_text("from,via,to,cost\na,b,c,no\n")
    assert "turns at 1 junction" in tilepath("import", "e.csv", "one.zarr", "--undirected", "--turns=t.csv")
    tilepath("import", "e.csv", "g.zarr", "--undirected")
    assert "from g.zarr with turns, U-turns allowed" in tilepath(
        "graph", "turns", "g.zarr", "two.zarr", "--turns", "t.csv"
    )
    assert open_graph("one.zarr").digest == open_graph("two.zarr").digest
    assert tilepath("path", "one.zarr", "a", "c") == "a -> c: 7 seconds over 3 arcs\na -> b -> d -> c\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "g.zarr", "one.zarr", "t.csv", "two.zarr"]
    tilepath("graph", "turns", "g.zarr", "two.zarr", "--turns", "t.csv", fault="two.zarr exists already")
    tilepath("graph", "turns", "g.zarr", "new.zarr", fault="costs by angles")


def test_an_import_with_turns_removes_its_hidden_folder_though_the_disk_fails_once(tmp_path, monkeypatch):
    (tmp_path / "e.csv").write_text(STREETS)
    (tmp_path / "t.csv").write_text("from,via,to,cost\na,b,c,no\n")
    opened, opens, strikes = os.open, [], -1

    def opening(path, flags, *mode, **folder):
        if ".turns-" in os.path.basename(os.fspath(path)):
            opens.append(path)
            if len(opens) == strikes:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return opened(path, flags, *mode, **folder)

    monkeypatch.setattr(os, "open", opening)
    want = import_graph(tmp_path / "e.csv", tmp_path / "want", turns=str(tmp_path / "t.csv"))
    strikes, opens = len(opens), []  # the last time, to remove it
    assert strikes
    found = import_graph(tmp_path / "e.csv", tmp_path / "found", turns=str(tmp_path / "t.csv"))
    assert len(opens) > strikes
    assert found.digest == want.digest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "found", "t.csv", "want"]


def test_an_import_with_turns_refuses_what_it_cannot_do(tmp_path):
    file = tmp_path / "e.csv"
    file.write_text(STREETS)
    (tmp_path / "t.csv").write_text("from,via,to,cost\na,b,x,no\n")
    for options, fault in {
        "turns=True": "e.csv: has no restrictions of turns; give a table of turns",
        "turns='t.csv'": r"t.csv, row 1: \S*e.csv: there is no vertex 'x'",
        "turns='none.csv'": r"turns \(--turns\): there is no file none.csv; give the path of a table",
        "angles='none.csv'": r"angles \(--angles\): there is no file none.csv",
        "turns='t.csv', sorted_rows=False": "turns need sorted rows",
        "angles='usual'": "e.csv: the weights are in seconds|e.csv has no coordinates",
    }.items():
        given = eval(f"dict({options})".replace("'t.csv'", repr(str(tmp_path / "t.csv"))))
        with pytest.raises((FormatError, ValueError), match=fault):
            import_graph(file, tmp_path / "store", **given)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "t.csv"]
