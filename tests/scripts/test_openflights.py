"""The OpenFlights script on a few airports of its own."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "openflights.py"))

AIRPORTS = (
    '1,"North Cape","N","X","NCP","XNCP",90,0,0,0,"U",\\N,"airport","own"\n'
    '7,"Equator, East","E","X","EEA","XEEA",0,90,0,0,"U",\\N,"airport","own"\n'
    '3,"Say \\"Field\\"","S","X",\\N,\\N,0,0,0,0,"U",\\N,"airport","own"\n'
    '9,"Unused","U","X","UUU","XUUU",1,1,0,0,"U",\\N,"airport","own"\n'
)
ROUTES = (
    "AA,1,NCP,1,EEA,7,,0,738\nBB,2,NCP,1,EEA,7,Y,0,738\nAA,1,EEA,7,,3,,0,738\n"
    "AA,1,NCP,1,ZZZ,\\N,,0,738\nAA,1,NCP,1,YYY,55,,0,738\n"
)


def test_routes_become_a_graph(tmp_path):
    (tmp_path / "airports.dat").write_text(AIRPORTS)
    (tmp_path / "routes.dat").write_text(ROUTES)
    graph, skipped = SCRIPT["import_routes"](tmp_path / "airports.dat", tmp_path / "routes.dat", tmp_path / "flights")
    assert skipped == 2
    assert graph.labels().tolist() == ["NCP", "EEA", 'Say "Field"']
    assert graph.coordinates().tolist() == [[0, 90], [90, 0], [0, 0]]
    indptr, indices, weights = graph.rows()
    assert indptr.tolist() == [0, 2, 3, 3]
    assert indices.tolist() == [1, 1, 2]
    assert weights.tolist() == pytest.approx([10007.557] * 3)  # a quarter of a great circle
    assert graph.weight_unit == "km"
