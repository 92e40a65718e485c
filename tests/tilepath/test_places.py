"""Places where commands and functions take vertices: the nearest vertex, and what is said of it."""

import numpy as np
import pytest
from commands import invoke, run_command

import tilepath
from pipelines import open_paths, write_graph
from tilepath.cli.places import AtPlaces, place_in


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A ring of three vertices near Greenwich, and a dead end into which a one-way street leads."""
    places = np.array([[-0.01, 51.5], [0.0, 51.5], [0.01, 51.5], [0.02, 51.5]])
    heads, weights = np.array([1, 2, 0, 3]), np.array([5, 6, 7, 8])
    labels = np.array(["a", "b", "c", "1,2"], object)
    path = tmp_path_factory.mktemp("places") / "g"
    return write_graph(path, np.array([0, 1, 2, 4, 4]), heads, weights, labels=labels, coordinates=places)


def run(*arguments):
    return run_command(*arguments).output.splitlines()


def test_a_path_between_places(network):
    told = run("path", network.path, "-0.0101,51.5", "0.011, 51.5")
    assert told == [
        "-0.0101,51.5: moved 6.9 m to vertex a",
        "0.011, 51.5: moved 69.2 m to vertex c",
        "a -> c: 11 over 2 arcs",
        "a -> b -> c",
    ]
    # A label goes before a place; of a dead end it is said that the place was moved past it.
    assert run("path", network.path, "a", "1,2")[0] == "a -> 1,2: 19 over 3 arcs"
    assert "moved past a nearer vertex" in run("path", network.path, "a", "0.0199,51.5")[0]
    assert "farther than 1,000 m from the nearest vertex" in run("path", network.path, "a", "0.2,51.5")[0]


def test_paths_of_pairs_of_places(network, tmp_path):
    table = tmp_path / "pairs.csv"
    out = tmp_path / "out.csv"
    table.write_text(
        "origin_lon,origin_lat,destination_lon,destination_lat\n-0.0101,51.5,0.011,51.5\n0,51.5,-0.01,51.5\n"
    )
    told = run("path", network.path, "--pairs", table, "--out", out)
    assert told == [
        f"{table}, origins: 2 places moved by at most 6.9 m",
        f"{table}, destinations: 2 places moved by at most 69.2 m",
        f"{out}: 2 paths",
    ]
    rows = [line.replace('"', "").split(",")[:3] for line in out.read_text().splitlines()[1:]]
    assert rows == [["a", "c", "11"], ["b", "a", "13"]]
    run("sssp", network.path, tmp_path / "paths", "--source", "a", "--source", "b", "--workers", "1")
    before = out.read_text()
    run("path", tmp_path / "paths", "--pairs", table, "--out", out, "--overwrite")
    assert out.read_text() == before
    table.write_text("origin,destination_x,destination_y\na,0.011,51.5\n")
    assert run("path", network.path, "--pairs", table, "--out", out, "--overwrite")[-1] == f"{out}: 1 path"


def test_pairs_of_floats_are_places(network):
    found = tilepath.od(network, [(-0.0101, 51.5), (0, 51.5)], [(0.011, 51.5)])
    assert found["distance"].tolist() == [11, 6]
    with pytest.raises(ValueError, match=r"is \(0.1, 51.5\); tilepath.vertices_at\(network, place\).vertices"):
        network.vertex((0.1, 51.5))


def test_a_wrong_place_is_named(network):
    for place, says in (
        ("0.0,91", "0.0,91: there is no longitude 0 with latitude 91"),
        ("51.5,0.0", r"51.5,0.0: lon 51.5 with lat 0 is .* exchange them"),
        ("a,b", "no vertex 'a,b'"),
    ):
        found = invoke("path", network.path, place, "c")
        assert found.exit_code == 1
        with pytest.raises(ValueError, match=says):
            raise found.exception
    bare = write_graph(network.path + "-bare", np.array([0, 1, 1]), np.array([1]))
    found = invoke("path", bare.path, "1.5,2", "0")
    assert "has no coordinates; name vertices" in str(found.exception)


def test_sources_and_targets_of_searches(network, tmp_path):
    (tmp_path / "sources.csv").write_text("id,Longitude,latitude\nx,-0.01,51.5\ny,0.0,51.501\nz,0.0,51.5\n")
    told = run(
        *("sssp", network.path, tmp_path / "p", "--source", "0.01,51.5", "--sources-file", tmp_path / "sources.csv"),
        *("--target", "b", "--workers", "1", "--device", "cpu"),
    )
    assert "0.01,51.5: moved 0.0 m to vertex c" in told
    assert f"{tmp_path / 'sources.csv'}: 3 places moved by at most 111.2 m to 2 vertices" in told
    assert network.names(open_paths(tmp_path / "p").sources) == ["c", "a", "b"]


def test_sources_in_a_file_are_the_places_that_it_has(network, tmp_path, monkeypatch):
    monkeypatch.setattr("tilepath.cli.places.say", lambda *_, **__: None)
    file = tmp_path / "sources.csv"
    file.write_text("origin,source,lon,lat\nb,b,-0.01,51.5\n")
    assert AtPlaces(network).in_file(str(file), "source") == [0]
    file.write_text("vertex,lon,lat\nb,-0.01,51.5\n")
    with pytest.raises(ValueError, match="sources.csv, row 1: the vertex b .* is not at the place"):
        AtPlaces(network).in_file(str(file), "source")


def test_pictures_from_places(network, tmp_path):
    told = run("picture", network.path, tmp_path / "p.svg", "--sample", "2", "--around", "-0.0101,51.5")
    assert told == ["-0.0101,51.5: moved 6.9 m to vertex a", str(tmp_path / "p.svg")]


def test_vertices_at_places_in_python(network, tmp_path):
    here = tilepath.vertices_at(network, (-0.0101, 51.5))
    assert network.vertex(here.vertices) == 0
    assert here.moved.tolist() == [pytest.approx(6.92, abs=0.01)]
    assert here.warning is None
    assert tilepath.shortest_path(network, here.vertices, "c").distance == 11
    several = tilepath.vertices_at(network.path, [(0.0, 51.5), (0.02, 51.5)])
    assert network.vertices(several.vertices).tolist() == [1, 2]
    assert "moved past a nearer vertex" in several.warning
    for places, says in (
        ([1, 2, 3], "give pairs of numbers"),
        ((0.0, 95.0), "there is no longitude"),
    ):
        with pytest.raises(ValueError, match=says):
            tilepath.vertices_at(network, places)
    with pytest.raises(ValueError, match="more than the limit"):
        tilepath.vertices_at(network, (0.5, 51.5), snap_limit=100)


@pytest.mark.parametrize(
    ("text", "place"),
    [("1,2", (1, 2)), (" -1.5 , +2e1 ", (-1.5, 20)), (".5,5.", (0.5, 5)), ("1,2,3", None), ("1;2", None), ("x", None)],
)
def test_texts_that_are_places(text, place):
    assert place_in(text) == place
