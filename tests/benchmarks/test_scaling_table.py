"""The tables of docs/scaling.md are those of the model, and of results."""

import json

import pytest

from benchmarks import scaling_table


def test_the_page_has_what_the_model_says():
    text = scaling_table.PAGE.read_text()
    assert scaling_table.filled(text, "model", scaling_table.model()) == text


def test_results_are_put_beside_the_model(tmp_path):
    record = {
        "case": "all pairs, n = 32768, float32, workers 2",
        "seconds": {"median": 1.25},
        "sizes": {"n": 32768, "workers": 2},
        "speedup": 1.75,
        "whole_seconds": 9.5,
        "exchange": "go straight from GPU to GPU",
    }
    results = tmp_path / "scaling-x.json"
    results.write_text(json.dumps({"device": "H100", "records": [record, {"case": "pull of 16 MiB"}]}))
    page = scaling_table.draw([results], tmp_path / "page.md").read_text()
    model = scaling_table.seconds(32768, 1) / scaling_table.seconds(32768, 2)
    row = f"| H100 | 32,768 | float32 | 2 | 1.250 s | 1.75 | {model:.2f} | 9.50 s | go straight from GPU to GPU |\n"
    assert row in page
    assert "No run" not in page
    with pytest.raises(ValueError, match="no place for the table 'other'"):
        scaling_table.filled(page, "other", "")
