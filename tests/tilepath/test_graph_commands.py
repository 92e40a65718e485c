"""The commands `tilepath graph ...` and `tilepath picture` of graphs, and what `tilepath info` says of one."""

import json

import pytest

from pipelines import open_graph
from tilepath.cli import describe_structure

TEXT = "a -> b, c\nb -> c\nc -> a, a\nd\n"


@pytest.fixture
def graph(tilepath, tmp_path):
    (tmp_path / "g.adj").write_text(TEXT)
    tilepath("import", "g.adj", "g.zarr")
    return "g.zarr"


def test_show(tilepath, graph, tmp_path):
    shown = tilepath("graph", "show", graph).splitlines()
    assert shown[0].startswith(f"{tmp_path / graph}: directed graph, 4 vertices, 5 arcs")
    assert shown[1:] == ["a -> b, c", "b -> c", "c -> a, a", "d ->"]
    assert tilepath("graph", "show", graph, "--rows", 2).splitlines()[1:] == ["a -> b, c", "b -> c", "and 2 more"]
    assert tilepath("graph", "show", graph, "c", "#0", "--weights") == "c -> a (1), a (1)\na -> b (1), c (1)\n"
    assert tilepath("graph", "show", graph, "c", "--reverse") == "c <- a, b\n"
    tilepath("graph", "show", graph, "e", fault="there is no vertex 'e'; give a label")
    assert tilepath("graph", "show", graph, "--out", "out.adj") == "out.adj: 4 lines\n"
    assert (tmp_path / "out.adj").read_text() == TEXT
    tilepath("graph", "show", graph, "--out", "out.adj", fault="--overwrite")
    tilepath("graph", "show", graph, "a", "--out", "new.adj", fault="leave out VERTICES")


def test_long_rows_are_cut(tilepath, tmp_path):
    (tmp_path / "star.adj").write_text(f"hub -> {', '.join(map(str, range(50)))}\n")
    tilepath("import", "star.adj", "star.zarr")
    row = tilepath("graph", "show", "star.zarr", "hub")
    assert row.endswith("18, 19, ... 30 more\n")


def test_a_permutation_shows_its_cycles(tilepath, tmp_path):
    (tmp_path / "p.adj").write_text("a -> c\nc -> b\nb -> a\nd -> d\n")
    tilepath("import", "p.adj", "p.zarr")
    shown = tilepath("graph", "show", "p.zarr").splitlines()
    assert shown[-3:] == ["a permutation with 2 cycles:", "a -> c -> b -> a", "d -> d"]


def test_reverse_and_tree(tilepath, graph):
    assert "reverse of g.zarr" in tilepath("graph", "reverse", graph, "r.zarr")
    assert tilepath("graph", "show", "r.zarr", "a", "b") == "a -> c, c\nb -> a\n"
    tilepath("graph", "reverse", graph, "r.zarr", fault="exists already")
    assert "4 vertices, 2 arcs" in tilepath("graph", "tree", graph, "t.zarr")
    assert tilepath("graph", "tree", graph, "t.csv") == "t.csv: parents of 4 vertices\n"
    tilepath("graph", "tree", graph, "t.csv", fault="t.csv exists already")


def test_commands_on_an_unweighted_graph_make_unweighted_graphs(tilepath, graph, tmp_path):
    assert "; unweighted (each arc counts 1);" in tilepath("info", graph, "--verify")
    tilepath("graph", "reverse", graph, "r.zarr")
    tilepath("graph", "tree", graph, "t.zarr")
    (tmp_path / "w.txt").write_text("0 1 1\n1 0 1\n")
    tilepath("import", "w.txt", "w.zarr")
    tilepath("graph", "tree", "w.zarr", "v.zarr")
    for store, weighted in ((graph, False), ("r.zarr", False), ("t.zarr", False), ("w.zarr", True), ("v.zarr", True)):
        assert (tmp_path / store / "weights").exists() == weighted
        assert json.loads(tilepath("info", store, "--json"))["weighted"] == weighted


def test_degrees_and_components(tilepath, graph, tmp_path):
    assert tilepath("graph", "degrees", graph).splitlines()[1:] == [
        "            0               1               1",
        "            1               1               1",
        "            2               2               2",
    ]
    assert json.loads(tilepath("graph", "degrees", graph, "--json"))[0] == {"least": 0, "most": 0, "out": 1, "in": 1}
    told = tilepath("graph", "components", graph, "--out", "c.csv").splitlines()
    assert told == [
        "2 components of 4 vertices",
        "        0: 3 vertices, the first is a",
        "        1: 1 vertex, the first is d",
        "c.csv: components of 4 vertices",
    ]
    found = json.loads(tilepath("graph", "components", graph, "--json"))
    assert found == {"components": 2, "sizes": [3, 1], "firsts": ["a", "d"]}
    assert (tmp_path / "c.csv").read_text().splitlines()[1:] == ['"a",0', '"b",0', '"c",0', '"d",1']
    tilepath("graph", "degrees", graph, "--out", "c.csv", fault="c.csv exists already")


@pytest.mark.gpu
@pytest.mark.parametrize("command", ["degrees {0} --json", "components {0} --json", "tree {0} {1}", "reverse {0} {1}"])
def test_on_a_gpu(gpu, tilepath, tmp_path, command):
    tilepath("generate", "rmat", "g.zarr", "--scale", 12)
    found = []
    for device in "cpu", "gpu":
        store = tmp_path / f"on-{device}"
        text = tilepath("graph", *command.format("g.zarr", store.name).split(), "--device", device)
        text = text.replace(store.name, "")
        found.append((text, open_graph(store).digest if store.exists() else ""))
    assert found[0] == found[1]


def test_info_tells_the_structure(tilepath, graph, tmp_path, monkeypatch):
    told = tilepath("info", graph)
    assert "degrees: out 0 to 2, 1.25 on average; in 0 to 2, 1.25 on average\n" in told
    assert "0 sources (no arc in), 0 sinks (no arc out), 1 isolated vertex; 2 weak components\n" in told
    assert "an Euler circuit (as many arcs in as out at every vertex)\n" in told
    numbers = (
        "numbers: e + n + 1 = 10 in sparse rows and n^2 = 16 as a dense matrix (n vertices, e arcs)\n"
        "the published criterion has n e = 20 in place of n^2: "
    )
    (tmp_path / "w.txt").write_text("0 1 5\n1 0 5\n")
    tilepath("import", "w.txt", "w.zarr")
    weighted = tilepath("info", "w.zarr", "--full")
    assert "numbers: 2 e + n + 1 = 7 in sparse rows and n^2 = 4 as a dense matrix (n vertices, e arcs)\n" in weighted
    assert "published" not in weighted
    assert numbers not in told
    assert numbers in tilepath("info", graph, "--full")
    facts = json.loads(tilepath("info", graph, "--json"))
    assert facts["structure"]["out_degrees"] == {"least": 0, "mean": 1.25, "largest": 2}
    assert (facts["structure"]["components"], facts["structure"]["isolated"]) == (2, 1)
    assert facts["storage"]["sparse_pays"]
    monkeypatch.setattr(describe_structure, "COUNTED", 8)
    told = tilepath("info", graph)
    assert "degrees and components are not counted, as there are more than 8 vertices and arcs; --full" in told
    assert "on average" not in told
    assert json.loads(tilepath("info", graph, "--json"))["structure"] is None
    assert "2 weak components" in tilepath("info", graph, "--full")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a -> b\nb -> a\n", "\nan Euler circuit (as many arcs in as out at every vertex)\n"),
        ("a -> a\nb -> b\n", "\nan Euler circuit for each of 2 components (as many arcs in as out at "),
        ("a -> b\nc\n", "\nan Euler path (2 vertices have unequal numbers of arcs in and out)\n"),
        ("a -> b\nc -> c\n", "\nno Euler circuit (2 vertices have unequal numbers of arcs in and out; arcs in 2 comp"),
        ("a -> b, c\n", "\nno Euler circuit (3 vertices have unequal numbers of arcs in and out)\n"),
        ("a\n", "\nno Euler circuit (there are no arcs)\n"),
    ],
)
def test_info_tells_whether_there_is_an_euler_circuit(tilepath, tmp_path, text, says):
    (tmp_path / "g.adj").write_text(text)
    tilepath("import", "g.adj", "g.zarr")
    assert says in tilepath("info", "g.zarr", "--full")
    assert (says in tilepath("info", "g.zarr")) == ("no Euler" not in says)


def test_pictures_go_by_the_schema(tilepath, graph, tmp_path):
    assert tilepath("picture", graph, "g.svg", "--edges") == "g.svg\n"
    assert "<svg" in (tmp_path / "g.svg").read_text()
    (tmp_path / "e.adj").write_text("a -> b, c\nb -> a\nc -> a\n")
    tilepath("import", "e.adj", "e.zarr")
    tilepath("euler", "e.zarr", "c.zarr")
    before = (tmp_path / "g.svg").read_bytes()
    tilepath(
        "picture", graph, "g.svg", fault="g.svg exists already; choose another name or pass overwrite (--overwrite)"
    )
    assert (tmp_path / "g.svg").read_bytes() == before
    tilepath("picture", graph, "g.svg", "--overwrite", "--title", "Mine")
    assert "<!-- Mine -->" in (tmp_path / "g.svg").read_text()
    tilepath("picture", "c.zarr", "1.svg")
    for legend in "arcs 1, 3, 5, ...", "arcs 2, 4, 6, ...":
        assert f"<!-- {legend} -->" in (tmp_path / "1.svg").read_text()
    tilepath("picture", "c.zarr", "1.svg", fault="(--overwrite)")
    tilepath("picture", "e.zarr", "2.svg", "--circuit", "c.zarr")
    tilepath("picture", "e.zarr", "3.svg", "--circuit")
    tilepath("picture", "e.zarr", "4.svg", "--circuit=c.zarr", "--components")
    assert len({(tmp_path / f"{i}.svg").read_bytes() for i in (1, 2, 3)}) == 1
    assert (tmp_path / "4.svg").read_bytes() != (tmp_path / "3.svg").read_bytes()
    tilepath("picture", "g.zarr", "5.svg", "--circuit", "c.zarr", fault="holds the circuits of another graph")
    (tmp_path / "lane.adj").write_text("a -> b, c\n")
    tilepath("import", "lane.adj", "lane.zarr")
    fault = "lane.zarr: an Euler path has one arc more out than in where it begins"
    tilepath("picture", "lane.zarr", "5.svg", "--circuit", fault=fault)
    tilepath("picture", "lane.zarr", "5.svg", "--partitions", fault="a has 0 in and 2 out")
    tilepath("picture", "c.zarr", "5.svg", "--edges", fault="--edges cannot go with a picture of a store of circuits")
    tilepath("picture", "e.zarr", "5.svg", "--graph", "g.zarr", fault="STORE is a graph itself")
    tilepath("picture", "e.zarr", "5.svg", "--stages", fault="name a folder")
    tilepath("picture", "e.zarr", "5.svg", "--stages", "--wash", fault="--wash cannot go with")
    tilepath("picture", "e.zarr", "5.svg", "--partitions", "--stages", fault="leave --partitions out")
    tilepath("picture", "e.zarr", "stages", "--stages")
    assert len(list((tmp_path / "stages").iterdir())) == 5
    tilepath("picture", "e.zarr", "stages", "--stages", fault="(--overwrite)")
    tilepath("picture", "e.zarr", "stages", "--stages", "--overwrite")
    tilepath("picture", "e.zarr", "p.svg", "--partitions")
    tilepath("picture", "e.zarr", "p.dot", "--partitions")
    tilepath("picture", "e.zarr", "p.dot", "--partitions", fault="(--overwrite)")
    assert not (tmp_path / "5.svg").exists()


def test_names_are_shown_as_a_file_has_them(tilepath, tmp_path):
    (tmp_path / "g.adj").write_text('a -> "d, e"\n')
    tilepath("import", "g.adj", "g.zarr")
    assert tilepath("graph", "show", "g.zarr").splitlines()[1:] == ['a -> "d, e"', '"d, e" ->']
