"""The tables of docs/scaling.md are those of the model, and of results."""

import re

from benchmarks import scaling_table


def test_results_are_put_beside_the_model():
    half = {
        "device": "NVIDIA H100 80GB HBM3",
        "case": "all pairs, n = 65536, int32, undirected, workers 1",
        "seconds": {"median": 9.0},
        "sizes": {"n": 65536, "workers": 1},
        "share_of_directed": 0.5,
        "whole_seconds": 10.0,
        "rows_written": 1024,
    }
    record = {
        "device": "NVIDIA H100 80GB HBM3",
        "case": "all pairs, n = 32768, float32, workers 2",
        "seconds": {"median": 1.25},
        "sizes": {"n": 32768, "workers": 2},
        "speedup": 1.75,
        "whole_seconds": 9.5,
        "rows_written": 256,
        "exchange": "go straight from GPU to GPU",
    }
    slower = {**record, "seconds": {"median": 1.5}, "coordination": "scheduler"}  # the table has the fastest alone
    scheduled = {**slower, "seconds": {"median": 3.0}, "sizes": {"n": 65536, "workers": 2}}
    four = {**record, "sizes": {"n": 32768, "workers": 4}, "rows_written": 32768, "coordination": None}
    page = scaling_table.measured([slower, record, slower, scheduled, half, four])
    model, larger = (scaling_table.seconds(n, 1) / scaling_table.seconds(n, 2) for n in (32768, 65536))
    assert f"| H100 | float32 | 32,768 | 2 | 1.25 s | 9.50 s | 256 | 1.75 | {model:.2f} | signals |\n" in page
    assert re.search(r"\| 32,768 \| 4 \| 1.25 s \| 9.50 s \| 32,768 \| 1.75 \| [\d.]+ \| chosen \|\n", page)
    assert f"| H100 | float32 | 65,536 | 2 | 3.00 s | 9.50 s | 256 | 1.75 | {larger:.2f} | scheduler |\n" in page
    assert "| H100 | int32, undirected | 65,536 | 1 | 9.00 s | 10.0 s | 1,024 | 2.00 | 2.00 |  |\n" in page
    assert "| 1.50 s |" not in page


def test_constants_stand_beside_what_was_measured():
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
    lines = scaling_table.constants(records).splitlines()
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
    assert scaling_table.constants([]).count("| not yet |") == 7


def test_epochs_are_compared_with_one_worker_of_the_same_file():
    whole = {"epochs": 6, "median": 9.0}
    one = {
        "case": "epoch 9 x 2, workers 1",
        "device": "NVIDIA H200",
        "seconds": {"median": 8.0},
        "whole_seconds": whole,
    }
    four = {**one, "case": "epoch 9 x 2, workers 4", "seconds": {"median": 2.0}}
    records = [{**four, "file": "a"}, {**one, "file": "a"}, {**four, "file": "b"}]
    rows = scaling_table.epochs(records).splitlines()[2:]
    assert rows == ["| H200 | epoch 9 x 2 | 4 | 2.000 s | 4.00 | 9.00 s, 6 epochs |"]
