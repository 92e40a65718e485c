"""The command of the benchmarks, as far as it runs without one."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench.py"


def test_every_suite_explains_itself(monkeypatch, capsys):
    bench = runpy.run_path(str(SCRIPT))
    for suite in [], *([name] for name in bench["SUITES"]):
        monkeypatch.setattr(sys, "argv", ["bench.py", *suite, "--help"])
        with pytest.raises(SystemExit) as done:
            bench["main"]()
        assert done.value.code == 0
        shown = capsys.readouterr().out
        assert "usage: bench.py" in shown
        assert ("--repeats" in shown) == bool(suite)


def test_a_suite_needs_no_package_of_another_suite(monkeypatch):
    monkeypatch.setitem(sys.modules, "minisom", None)
    monkeypatch.delitem(sys.modules, "benchmarks.suites.minisom", raising=False)
    monkeypatch.setattr(sys, "argv", ["bench.py", "sssp", "--help"])
    with pytest.raises(SystemExit) as done:
        runpy.run_path(str(SCRIPT))["main"]()
    assert done.value.code == 0


@pytest.mark.slow
def test_the_script_starts():
    done = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
