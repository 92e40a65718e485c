"""What is a header and which columns are read: by name, by kind, or refused. Point A4 of the hostile trials."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_command

from pipelines.formats.graphs import FormatError, import_graph


@pytest.fixture
def edges(tmp_path):
    """edges(text, name, **options): the arcs of an imported file, by label where there are labels."""

    def edges(content, name="x.csv", **options):
        file = tmp_path / name
        if isinstance(content, dict):
            pq.write_table(pa.table(content), file)
        else:
            file.write_text(content)
        graph = import_graph(file, tmp_path / "store", overwrite=True, **options)
        indptr, heads, weights = graph.rows()
        tails, labels = np.repeat(np.arange(graph.n), np.diff(indptr)), graph.labels()
        if labels is not None:
            tails, heads = labels[tails], labels[heads]
        return list(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))

    return edges


@pytest.mark.parametrize(
    "first",
    ["a,b,", "a,b,NA", "a,b,nan", "a,b,5km", 'a,b,"5,5"', "a,b,1_000", "a,b,0x10", "a,b,٣", "x1,7,5km", "NAN,INF,inf"],
)
def test_a_first_line_with_an_odd_weight_is_refused(edges, first):
    for below in ("c,d,5\n", "c,d,5\ne,f,6\n", "\nc,d,5\n"):
        with pytest.raises(
            FormatError,
            match=r"x\.csv, line 1: .* may be a header or an edge.*--header\) or header=False \(--no-header",
        ):
            edges(f"{first}\n{below}")
        assert edges(f"{first}\n{below}", header=True)[0] == ("c", "d", 5)
        with pytest.raises(FormatError, match=r"x\.csv, line 1: .*(finite|empty)"):
            edges(f"{first}\n{below}", header=False)


@pytest.mark.parametrize("first", ["NAN,INF", "1E5,LHR", "x1,7", "7,x1", "x1,x2", ",x", "1.5,x"])
def test_names_above_numbers_are_refused_unless_all_are_words(edges, first):
    below = "1,2\nx1,3\n3,x2\n" if first == "x1,x2" else "1,2\n2,3\n"
    with pytest.raises(FormatError, match=r"line 1: .*--header\) or header=False \(--no-header"):
        edges(f"{first}\n{below}")


def test_names_that_float_takes_are_names(edges):
    assert edges("LHR,NAN,3\nINF,1E5,4\n") == [("LHR", "NAN", 3), ("INF", "1E5", 4)]
    assert edges("NAN INF\nINF NAN\n", "x.txt") == [("NAN", "INF", 1), ("INF", "NAN", 1)]
    assert edges("1E5,INF\nNAN,LHR\n")[0] == ("1E5", "INF", 1)
    assert edges("NAN,INF\n1,2\n", header=False) == [("NAN", "INF", 1), ("1", "2", 1)]


@pytest.mark.parametrize("between", ["", "\n", "# c\n", "\n% c\n\n", "# c\n" * 3000])
@pytest.mark.parametrize("rows", ["a,b\nb,c\n", "0,1\n1,2\n", "7,NA\nNA,8\n"])
def test_a_header_before_anything(edges, between, rows):
    expected = edges(rows, header=False, labels=True)
    assert edges(f"# top\nsource,target\n{between}{rows}", labels=True) == expected
    assert edges(f'"Source" , "Target"\n{between}{rows}', labels=True) == expected


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("id,source,target", "7,1,2", (1, 2, 1)),
        ("Id,Source,Target,Weight", "7,1,2,9", (1, 2, 9)),
        (",source,target,weight", "7,1,2,9", (1, 2, 9)),
        ("Source,Target,Type,Id,Label,Weight", "1,2,Directed,7,x,9", (1, 2, 9)),
        ("weight,target,source", "9,2,1", (1, 2, 9)),
        ("from,km,to", "1,9,2", (1, 2, 9)),
        ("FromNodeId,ToNodeId", "1,2", (1, 2, 1)),
        ("id_1,id_2", "1,2", (1, 2, 1)),
        ("edge_id,u,v,length", "7,1,2,9", (1, 2, 9)),
        ("tail,head,cost", "1,2,9", (1, 2, 9)),
        ("origin,destination,distance", "1,2,9", (1, 2, 9)),
        ("source,target,color", "1,2,9", (1, 2, 9)),  # the third of three
        ("source,target,id", "1,2,7", (1, 2, 1)),
        ("a,b,c", "1,2,9", (1, 2, 9)),
    ],
)
def test_well_known_names_choose_the_columns(edges, header, row, expected):
    assert edges(f"{header}\n{row}\n", base=0) == [expected]
    names = header.split(",")
    values = [int(value) if value.isdecimal() else value for value in row.split(",")]
    assert edges({name: [value] for name, value in zip(names, values, strict=True)}, "x.parquet", base=0) == [expected]


@pytest.mark.parametrize(
    "header",
    [
        "source,target,weight,length",  # two weights
        "source,target,a,b",
        "a,source,target",
        "source,src,target",
        "length,a,b",
        "a,b,source",
        "id,a,b",
        "a,b,id",
        "target,a",
    ],
)
def test_columns_in_doubt_are_refused(edges, header):
    names = header.split(",")
    with pytest.raises(FormatError, match=r"x\.csv: .*(--columns|--weight)"):
        edges(f"{header}\n" + ",".join("1" * len(names)) + "\n", base=0)
    with pytest.raises(FormatError, match=r"x\.parquet: .*(--columns|--weight)"):
        edges({name: [1] for name in names}, "x.parquet", base=0)
    assert edges({name: [1] for name in names}, "x.parquet", base=0, columns=(0, 1)) == [(1, 1, 1)]


def test_single_lines_and_headers_alone(edges):
    assert edges("a,b\n") == [("a", "b", 1)]
    assert edges("0,1,5") == [(0, 1, 5)]
    for text, options in (("source,target\n", {}), ("from,to,km\n# c\n\n", {}), ("x,y\n", {"header": True})):
        with pytest.raises(FormatError, match=r"x\.csv, line 1: is a header, and no edge .*--no-header.*--vertices"):
            edges(text, **options)
        assert edges(text, vertices=3, **options) == []  # a graph without arcs is a graph
    for text in "", "# c\n":
        with pytest.raises(FormatError, match=r"x\.csv: holds no edges; .*--vertices"):
            edges(text)
        assert edges(text, vertices=3) == []
    assert edges("source,target\n", header=False) == [("source", "target", 1)]


def test_vertices_called_like_columns(edges):
    assert edges("u,v,5\nv,w,6\n") == [("u", "v", 5), ("v", "w", 6)]
    assert edges("u v\nv w\n", "x.txt") == [("u", "v", 1), ("v", "w", 1)]
    assert edges("source,a\na,target\n") == [("source", "a", 1), ("a", "target", 1)]
    for text in ("u,v\na,b\n", "from,to,5\nthe,cat,3\n", "source,target\nsource,a\n", "node1,node2\nnode3,node4\n"):
        with pytest.raises(FormatError, match=r"line 1: .*--header\) or header=False \(--no-header"):
            edges(text)


def test_other_columns_leave_a_header_in_doubt_only_by_words_above_numbers(edges):
    routes = "2B,410,ZRH,2965,KZN,2990,,0,CR2\n2B,410,ASF,2966,KZN,2990,,0,320\n"
    assert edges(routes, columns=(2, 4)) == [("ZRH", "KZN", 1), ("ASF", "KZN", 1)]
    named = "airline,number,departs,gate,lands\n2B,410,ZRH,2,KZN\n"
    with pytest.raises(FormatError, match=r"line 1: .*'number' stands above numbers.*--header"):
        edges(named, columns=(2, 4))


def test_words_that_look_like_other_blanks_stay_one_field(edges):
    assert edges("New\u00a0York Paris\nParis New\u00a0York\n", "x.txt")[0] == ("New\u00a0York", "Paris", 1)
    assert edges("a\u2003b,c\n") == [("a\u2003b", "c", 1)]


TNTP = (
    "<NUMBER OF NODES> 3\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 1\n{}<END OF METADATA>\n{}"
    "2\t1\t7\t8\t9.5\t0\t4\t0\t0\t1\t;\n"
)
SWAPPED = "~ term_node init_node length capacity free_flow_time b power speed toll link_type ;\n"


@pytest.mark.parametrize("after", [SWAPPED, SWAPPED + "~ a remark\n", "~ a remark\n" + SWAPPED, ""])
def test_a_tntp_header_out_of_order_is_honoured(edges, after):
    text = TNTP.format("" if after else SWAPPED, after)
    assert edges(text, "x.tntp") == [("1", "2", 9.5)]
    assert edges(text, "x.tntp", weight="length") == [("1", "2", 7)]


def test_a_tntp_header_in_doubt_is_refused(edges):
    odd = SWAPPED.replace("term_node", "to").replace("init_node", "a")
    with pytest.raises(FormatError, match=r"x\.tntp: it is unclear what column 0, called 'to', holds"):
        edges(TNTP.format("", odd), "x.tntp")
    with pytest.raises(FormatError, match="several columns 'length'"):
        edges(TNTP.format("", SWAPPED.replace("capacity", "length")), "x.tntp", weight="length")


def test_the_import_says_what_it_took(tmp_path):
    file = tmp_path / "x.csv"

    def said(text):
        file.write_text(text)
        return run_command("import", file, tmp_path / "s", "--overwrite").output

    lines = said("# c\nid,source,target,km\n7,0,2,3.5\n").splitlines()
    assert lines[0] == (
        f"{file}: line 2 is a header; tails from column 1 (source), heads from column 2 (target), "
        "weights from column 3 (km)"
    )
    assert len(lines) == 2
    assert f"{file}: no header; tails from column 0, heads from column 1, no weights, so each arc counts 1" in said(
        "0,1\n"
    )
