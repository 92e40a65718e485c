"""Events of flow cytometers: read in pieces, as flowio reads them whole."""

import re
import tracemalloc

import flowio
import numpy as np
import pytest

from pipelines.formats.errors import FormatError
from pipelines.formats.samples import import_samples
from pipelines.formats.samples.columns import Wanted
from pipelines.formats.samples.cytometry import read_fcs


def fcs_by_hand(path, records, order, text, version="3.0"):
    """An FCS file of structured records; `order` as $BYTEORD has it."""
    data = records.tobytes()
    facts = {"MODE": "L", "NEXTDATA": "0", "BYTEORD": order, "PAR": len(records.dtype), "TOT": len(records)}
    for channel in range(1, len(records.dtype) + 1):
        facts |= {f"P{channel}N": f"c{channel}", f"P{channel}B": 8 * records.dtype[channel - 1].itemsize}
    places = {"BEGINDATA": 4000, "ENDDATA": 4000 + len(data) - 1}
    pairs = "".join(f"/${key}/{value}" for key, value in (facts | places | text).items()) + "/"
    head = f"FCS{version}    " + "".join(f"{place:8}" for place in (58, 57 + len(pairs), *places.values(), 0, 0))
    path.write_bytes((head + pairs).ljust(4000).encode() + data)


@pytest.mark.parametrize(
    ("kinds", "order", "text"),
    [
        ([">f4"] * 3, "4,3,2,1", {"DATATYPE": "F", "P1R": 1024, "P2R": 1024, "P3R": 9, "P2E": "4,1", "P3G": "2.5"}),
        (["<f8"] * 2, "1,2,3,4", {"DATATYPE": "D", "P1R": 1, "P2R": 1, "TIMESTEP": "0.5", "P2G": "0"}),
        (["<u2"] * 3, "1,2,3,4", {"DATATYPE": "I", "P1R": 1024, "P2R": 65536, "P3R": 1000, "P1E": "4,0"}),
        ([">u1", ">u4", ">u2"], "4,3,2,1", {"DATATYPE": "I", "P1R": 256, "P2R": 1000, "P3R": 65536}),
        (["<u4"], "1,2", {"DATATYPE": "I", "P1R": 2**64}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
@pytest.mark.parametrize("version", ["2.0", "3.1"])
def test_events_of_fcs_are_read_in_pieces_as_flowio_reads_them(tmp_path, kinds, order, text, version):
    rng = np.random.default_rng(0)
    records = np.zeros(997, [(str(i), kind) for i, kind in enumerate(kinds)])
    for i, kind in enumerate(kinds):
        whole = "u" in kind
        records[str(i)] = rng.integers(0, np.iinfo(kind).max, 997, kind[1:]) if whole else rng.random(997) * 1000
    fcs_by_hand(tmp_path / "t.fcs", records, order, text, version)
    expected = flowio.FlowData(tmp_path / "t.fcs").as_array()
    for piece in (1 << 10, 1 << 20):
        options = {"dtype": "float64", "piece_bytes": piece, "overwrite": True}
        samples = import_samples(tmp_path / "t.fcs", tmp_path / "s", **options)
        np.testing.assert_array_equal(samples.values(), expected)


def test_events_may_be_more_than_memory(tmp_path):
    events = np.random.default_rng(0).random((60_000, 8))
    with open(tmp_path / "t.fcs", "wb") as file:
        flowio.create_fcs(file, events.ravel().tolist(), list("abcdefgh"), None, {"spillover": "2,a,b,1,0.2,0.1,1"})
    tracemalloc.start()
    with read_fcs(str(tmp_path / "t.fcs"), Wanted(piece_bytes=1 << 16), compensate=True) as opened:
        found = sum(len(rows.values) for rows in opened.rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == 60_000
    assert peak < 1 << 20  # of 1.9 MB in the file, 3.8 MB in float64


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ({"DATATYPE": "F", "MODE": "C"}, "holds histograms"),
        ({"DATATYPE": "F", "BYTEORD": "3,4,1,2"}, "$BYTEORD is '3,4,1,2'"),
        ({"DATATYPE": "I", "P1B": "24"}, "integers have 24, 32 bits"),
        ({"DATATYPE": "F", "PAR": "3", "P3N": "c", "P3B": "32", "P3R": "9"}, "do not hold whole events"),
        ({"DATATYPE": "F", "P1E": "many,1"}, "could not convert"),
        ({"DATATYPE": "F", "TOT": "4"}, "$TOT is 4, but there is room for 5 events of 8 bytes"),
        ({"DATATYPE": "I", "P2R": "0"}, "$P2R, the number of values, is 0"),
    ],
)
def test_what_a_file_says_of_its_events_is_checked(tmp_path, text, fault):
    records = np.ones(5, [("a", "<f4"), ("b", "<f4")])
    fcs_by_hand(tmp_path / "t.fcs", records, "1,2,3,4", {"P1R": 9, "P2R": 9} | text)
    with pytest.raises(FormatError, match=rf"t\.fcs: cannot be read as FCS \(.*{re.escape(fault)}"):
        import_samples(tmp_path / "t.fcs", tmp_path / "s")
