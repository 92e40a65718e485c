"""The tables of docs/scaling.md are those of the model, and of results."""

import json

import pytest

from benchmarks import scaling_table
from benchmarks.harness import ROOT


def test_the_page_has_what_the_model_and_the_records_say(tmp_path):
    results = sorted((ROOT / "benchmarks" / "results").glob("scaling-*.json"))
    page = scaling_table.draw(results, tmp_path / "page.md")
    assert page.read_text() == scaling_table.PAGE.read_text()


def test_results_are_put_beside_the_model(tmp_path):
    half = {
        "case": "all pairs, n = 65536, int32, undirected, workers 1",
        "seconds": {"median": 9.0},
        "sizes": {"n": 65536, "workers": 1},
        "share_of_directed": 0.5,
        "whole_seconds": 10.0,
        "rows_written": 1024,
    }
    record = {
        "case": "all pairs, n = 32768, float32, workers 2",
        "seconds": {"median": 1.25},
        "sizes": {"n": 32768, "workers": 2},
        "speedup": 1.75,
        "whole_seconds": 9.5,
        "rows_written": 256,
        "exchange": "go straight from GPU to GPU",
    }
    results = tmp_path / "scaling-x.json"
    slower = {**record, "seconds": {"median": 1.5}, "coordination": "scheduler"}  # the table has the fastest alone
    scheduled = {**slower, "seconds": {"median": 3.0}, "sizes": {"n": 65536, "workers": 2}}
    four = {**record, "sizes": {"n": 32768, "workers": 4}, "rows_written": 32768}
    records = [slower, record, slower, scheduled, half, four]
    results.write_text(json.dumps({"device": "NVIDIA H100 80GB HBM3", "records": records}))
    page = scaling_table.draw([results], tmp_path / "page.md").read_text()
    model, larger = (scaling_table.seconds(n, 1) / scaling_table.seconds(n, 2) for n in (32768, 65536))
    assert f"| H100 | float32 | 32,768 | 2 | 1.25 s | 9.50 s | 256 | 1.75 | {model:.2f} | signals |\n" in page
    assert "| H100 | float32 | 32,768 | 4 | 1.25 s | 9.50 s | 32,768 | 1.75 | " in page
    assert f"| H100 | float32 | 65,536 | 2 | 3.00 s | 9.50 s | 256 | 1.75 | {larger:.2f} | scheduler |\n" in page
    assert "| H100 | int32, undirected | 65,536 | 1 | 9.00 s | 10.0 s | 1,024 | 2.00 | 2.00 |  |\n" in page
    assert "| 1.50 s |" not in page
    with pytest.raises(ValueError, match="no place for the table 'other'"):
        scaling_table.filled(page, "other", "")


def test_constants_stand_beside_what_was_measured(tmp_path):
    seconds = {
        "signal: a counter that another worker waits for": 5e-5,
        "hop: a task that waits for one on another worker": 5.5e-3,
        "gap: a task that waits for one on the same worker": 2e-3,
        "closing a block of 1024": 1.5e-3,
        "pull of 256 MiB": 9e-4,
        "256 MiB through Dask": 0.25,
        "all pairs, n = 65536, float32, workers 1": 16.0,
        "all pairs, n = 8192, float32, workers 1": 1.0,
    }
    records = [
        {"case": case, "seconds": {"median": s}, "bytes_per_second": 2**28 / s, "relaxations_per_second": 1.7e13}
        for case, s in seconds.items()
    ]
    records += [{**records[4], "bytes_per_second": 4e11}, {**records[6], "speedup": 1.0}]
    results = tmp_path / "scaling-x.json"
    results.write_text(json.dumps({"device": "H100", "records": records}))
    lines = scaling_table.constants([results]).splitlines()
    rows = {line.split(" | ")[0]: line.split(" | ")[2] for line in lines[2:]}
    assert rows == {
        "| R": "n = 65,536: 17e12",
        "| PULL": "256 MiB: 298 to 400e9",
        "| CLOSE": "1,024 rows: 1.5 us",
        "| SIGNAL": "50 us",
        "| HOP": "5.5 ms",
        "| GAP": "2 ms",
        "| DASK": "256 MiB: 1.07e9",
    }
    results.write_text(json.dumps({"device": "H100", "records": []}))
    assert scaling_table.constants([results]).count("| not yet |") == 7


def test_other_suites_are_compared_with_one_worker_of_the_same_file(tmp_path):
    one = {"case": "R-MAT 24, 256 sources, workers 1", "seconds": {"median": 8.0}, "whole_seconds": 20.0}
    four = {"case": "R-MAT 24, 256 sources, workers 4", "seconds": {"median": 2.0}, "whole_seconds": 6.0}
    epochs = {"case": "epoch, workers 2", "seconds": {"median": 2.0}, "whole_seconds": {"epochs": 6, "median": 9.0}}
    for name, records in ("sources-a", [four, one]), ("sources-b", [four]):
        (tmp_path / f"{name}.json").write_text(json.dumps({"device": "H100", "records": records}))
    rows = scaling_table.others(sorted(tmp_path.iterdir())).splitlines()[2:]
    assert rows == ["| H100 | R-MAT 24, 256 sources | 4 | 2.000 s | 4.00 | 6.00 s |"]
    (tmp_path / "sources-c.json").write_text(
        json.dumps({"device": "H200", "records": [epochs, {**epochs, "case": "epoch, workers 1"}]})
    )
    assert scaling_table.others([tmp_path / "sources-c.json"]).endswith(
        "| H200 | epoch | 2 | 2.000 s | 1.00 | 9.00 s, 6 epochs |\n"
    )
