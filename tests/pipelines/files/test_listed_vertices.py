"""Sources and targets of searches: by label, index, option and file; each named once, in either pipeline."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zarr
from commands import printed, run_command

from gpuops.errors import VerificationError
from pipelines import all_pairs_shortest_paths, positions, single_source_shortest_paths
from pipelines.files.listed_vertices import listed_vertices, vertices_in_file
from pipelines.stores.distances import open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.paths import open_paths


@pytest.fixture
def graph(tmp_path):
    """A ring of 6 whose labels are the indices of others: the label of i is i + 1."""
    ring = np.arange(7), (np.arange(6) + 1) % 6, np.ones(6, "int32")
    return write_graph(tmp_path / "g", *ring, labels=np.array([str(i + 1) for i in range(6)]))


@pytest.mark.parametrize(
    ("listed", "vertices"),
    [
        ([3, 1], (2, 0)),
        (np.array([3, 1], np.uint8), (2, 0)),
        (range(1, 3), (0, 1)),
        (["3", "#3", 1], (2, 3, 0)),
        ((" 6", np.int16(1)), (5, 0)),
        (np.array(["3", "1"]), (2, 0)),
        (np.array(["3", 1], dtype=object), (2, 0)),
        (positions([3, 0]), (3, 0)),
    ],
)
def test_an_int_is_a_name_as_its_text_is(graph, listed, vertices):
    assert listed_vertices(graph, "source", listed) == vertices


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ([], "there is no target; name at least one"),
        (["0"], "there is no vertex '0'; give a label"),
        ([1, 7], r"target 2 of the list: there is no vertex labelled 7; give a label, such as '1', or a position, as"),
        (["2", 2], "target 2 is named twice; name each target once"),
        (positions([4, 4]), "target 5 is named twice"),
    ],
)
def test_lists_that_cannot_be(graph, listed, message):
    with pytest.raises(ValueError, match=message):
        listed_vertices(graph, "target", listed)


def test_files(graph, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf3\r\n\r\n #0 \r6")
    (tmp_path / "b").write_text("3\n#0\n6\n")
    (tmp_path / "c.lst.GZ").write_bytes(gzip.compress(b"3\n#0\n6\n"))
    (tmp_path / "d.csv").write_text("source,target\n3,1\n#0,1\n6,1\n")
    (tmp_path / "g.csv").write_text("Origin;x\n3;1\n#0;1\n6;1\n")
    (tmp_path / "e.TSV").write_text("vertex\tx\n3\t1\n#0\t1\n6\t1\n")
    for name in ("a.txt", "b", "c.lst.GZ", "d.csv", "e.TSV", "g.csv"):
        assert vertices_in_file(graph, "source", tmp_path / name) == [2, 0, 5]
    pa.parquet.write_table(pa.table({"target": pa.array([3, 1, 6], pa.int16())}), tmp_path / "f.parquet")
    assert vertices_in_file(graph, "target", tmp_path / "f.parquet") == [2, 0, 5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"3\n\n0\n", "a.txt, line 3: .*there is no vertex '0'"),
        ("a.txt", b"3\n1,2\n", "a.txt, line 2: .*there is no vertex '1,2'"),
        ("a.txt", b"3\n\xff\n", r"a.txt: cannot be read \(.utf-8. codec"),
        ("a.csv", b"source\n3\n7\n", "a.csv, row 2: .*there is no vertex '7'"),
        ("a.csv", b"1\n2\n3\n", "a.csv: no column `source` or `vertex`; its columns are 1; rename one, or list"),
        ("a.csv", b"lng,lat\n2,3\n", "its columns are lng, lat; .* tilepath.vertices_at moves places to vertices"),
        ("a.txt.gz", b"1\n2\n3\n", r"a.txt.gz: cannot be read \(zlib"),
    ],
)
def test_files_that_cannot_be(graph, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        vertices_in_file(graph, "source", tmp_path / name)


def test_both_pipelines_take_labels_and_refuse_what_is_named_twice(client, graph, tmp_path):
    apsp, sssp = all_pairs_shortest_paths, single_source_shortest_paths
    for method in ("floyd-warshall", "batched"):
        found = apsp(client, graph, tmp_path / method, sources=["2", 1, "#5"], method=method)
        assert found.sources.tolist() == [1, 0, 5]
        again = apsp(client, graph, tmp_path / method, sources=np.array([2, 1, 6]), method=method, resume=True)
        assert again.sources.tolist() == [1, 0, 5]
        with pytest.raises(StoreError, match="was begun with sources 2, 1, 6, not 1, 2, 3 and 1 more; repeat"):
            apsp(client, graph, tmp_path / method, sources=range(1, 5), method=method, resume=True)
    found = sssp(client, graph, tmp_path / "p", ["2", 1], targets=["#3", "3"])
    assert (found.sources.tolist(), found.targets) == ([1, 0], (3, 2))
    with pytest.raises(StoreError, match="was begun with targets 4, 3, not none"):
        sssp(client, graph, tmp_path / "p", ["2", 1], resume=True)
    assert sssp(client, graph, tmp_path / "all", "all").sources.tolist() == list(range(6))
    for call in (apsp, sssp):
        for twice in ([2, 3, 2], ["2", 2], np.array([2, 2])):
            with pytest.raises(ValueError, match="source 2 is named twice; name each source once"):
                call(client, graph, tmp_path / "no", sources=twice)
        with pytest.raises(ValueError, match="the sources are not a list"):
            call(client, graph, tmp_path / "no", sources="2")
    assert not (tmp_path / "no").exists()
    zarr.open_array(tmp_path / "p" / "distances", mode="r+")[0, 2] = 0
    with pytest.raises(VerificationError, match="vertex 4 is at the distance 2, but the arc 3 -> 4"):
        sssp(client, graph, tmp_path / "p", ["2", 1], targets=["#3", "3"], resume=True, verify=True)


def test_the_commands_take_files_of_sources_and_targets(graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def tilepath(*arguments, fault=None):
        printed(*arguments, "--device", "cpu", fault=fault)

    (tmp_path / "s.txt").write_text("6\n#1\n")
    (tmp_path / "t.csv").write_text("target\n4\n")
    tilepath("apsp", "g", "d", "--source", "1", "--sources-file", "s.txt")
    assert open_distances("d").sources.tolist() == [0, 5, 1]
    tilepath("sssp", "g", "p", "--sources-file", "s.txt", "--targets-file", "t.csv", "--target", "5")
    assert (open_paths("p").sources.tolist(), open_paths("p").targets) == ([5, 1], (4, 3))
    for command in ("apsp", "sssp"):
        tilepath(command, "g", "no", "--source", "6", "--sources-file", "s.txt", fault="source 6 is named twice")
        tilepath(command, "g", "no", "--source", "0", fault="there is no vertex '0'; give a label")
    tilepath("sssp", "g", "no", fault="--source or --sources-file")
    assert not (tmp_path / "no").exists()


def test_the_word_all_is_a_label_where_one_is_so_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, labels in (("named", np.array(["x", "all"])), ("plain", None)):
        write_graph(tmp_path / name, np.array([0, 1, 1]), np.array([1]), np.array([1]), labels=labels)
        run_command("sssp", name, f"{name}.p", "--source", "all", "--device", "cpu")
    assert open_paths("named.p").sources.tolist() == [1]
    assert open_paths("plain.p").sources.tolist() == [0, 1]
