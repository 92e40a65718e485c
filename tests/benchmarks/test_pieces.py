"""Suites in pieces, with a played process in place of scripts/bench.py, and a played clock."""

import argparse
import json
import runpy
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pieces
from benchmarks.pieces import Split, run_all
from benchmarks.suites import sssp_table

SECONDS = {"slow": 900, "long": 500}  # of a piece; others take one
DEVICE = "cpu of the test"


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Returns a function that runs one suite of the given pieces; it returns whether all are done, calls, records."""
    clock, calls = [0.0], []

    class Process:
        def __init__(self, command, **_):
            self.option = command[3]
            calls.append(self.option)
            facts = {"device": DEVICE, "commit": "abc", "records": [{"case": self.option}]}
            Path(command[command.index("--out") + 1]).write_text(json.dumps(facts))

        def wait(self, seconds):
            took = SECONDS.get(self.option, 1)
            clock[0] += min(seconds, took)
            if took > seconds:
                raise subprocess.TimeoutExpired("bench.py", seconds)
            return 3 if self.option == "fails" else 0

    monkeypatch.setattr(pieces.subprocess, "Popen", Process)
    monkeypatch.setattr(pieces.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(pieces, "_stop", lambda _: None)
    monkeypatch.setattr(pieces, "device_name", lambda _: DEVICE)
    monkeypatch.setattr(pieces, "commit", lambda: "abc")

    def run(*options, minutes=1000.0):
        monkeypatch.setattr(pieces, "SPLITS", {"som": Split(options, "cpu"), "limits": Split(device="gpu")})
        calls.clear()
        complete = run_all(["limits", "som"], np, tmp_path, minutes)
        out = tmp_path / "som-cpu-of-the-test.json"
        return complete, [*calls], json.loads(out.read_text())["records"] if out.exists() else None

    return run


def test_the_table_of_sweeps_has_every_graph_in_both_dtypes():
    parser = argparse.ArgumentParser()
    sssp_table.add_arguments(parser)
    given = [parser.parse_args(piece.split()) for piece in pieces.SPLITS["sssp-table"].pieces]
    found = sorted((scale, dtype) for each in given for scale in each.scales for dtype in each.dtypes)
    assert found == [(scale, dtype) for scale in sssp_table.SCALES for dtype in ("float32", "float64")]


def test_pieces_are_run_once_and_put_together(played, tmp_path, capsys):
    assert played("a", "b") == (True, ["a", "b"], [{"case": "a"}, {"case": "b"}])
    assert "limits needs a GPU" in capsys.readouterr().out
    assert not list((tmp_path / "pieces").iterdir())
    assert played("a", "b")[1] == []


def test_records_of_another_commit_are_measured_anew(played, monkeypatch):
    played("a")
    monkeypatch.setattr(pieces, "commit", lambda: "def")
    assert played("a")[1] == ["a"]


def test_a_piece_that_fails_is_run_again(played, capsys):
    assert played("a", "fails", "b") == (False, ["a", "fails", "b"], None)
    assert "som fails: failed with status 3" in capsys.readouterr().out
    assert played("a", "c", "b") == (True, ["c"], [{"case": "a"}, {"case": "c"}, {"case": "b"}])


def test_a_piece_that_takes_too_long_is_stopped(played):
    stopped = {"case": "the rest of som slow", "stopped_after_seconds": 600}
    assert played("slow", "b") == (True, ["slow", "b"], [{"case": "slow"}, stopped, {"case": "b"}])


def test_a_piece_that_the_time_of_a_call_cuts_is_begun_again(played, capsys):
    assert played("a", "long", "b", minutes=8) == (False, ["a", "long"], None)
    assert "The time is over" in capsys.readouterr().out
    assert played("a", "long", "b", minutes=9) == (
        True,
        ["long", "b"],
        [{"case": "a"}, {"case": "long"}, {"case": "b"}],
    )


def test_a_piece_that_takes_all_the_time_of_a_call_is_not_begun_for_ever(played):
    assert played("long", "b", minutes=8) == (False, ["long"], None)
    stopped = {"case": "the rest of som long", "stopped_after_seconds": 480}
    assert played("long", "b", minutes=8) == (True, ["b"], [{"case": "long"}, stopped, {"case": "b"}])


def test_a_piece_is_ended_with_what_it_started():
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
    pieces._stop(shell)
    assert shell.returncode == -15


def test_the_options_of_all_pieces_are_those_of_their_suites():
    bench = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "bench.py"))
    for name in bench["SUITES"]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--device")  # as scripts/bench.py adds it to all suites
        bench["suite_of"](name).add_arguments(parser)
        for piece in pieces.pieces_of(name, np, Path()):
            parser.parse_args(piece.options)
        for options in pieces.SPLITS[name].pieces:
            parser.parse_args(options.split())
