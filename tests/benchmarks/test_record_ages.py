"""The list of records: what counts as a change since a commit, in a history that is made here."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import record_ages

BEFORE = {
    "gpuops/som/bmu.cu": "// screens\nint f() { return 1; }\n",
    "gpuops/som/moved.py": '"""Units."""\nUNITS = 1\n',
    "gpuops/som/update.py": '"""Sums."""\n\n\ndef add(a, b):\n    """Add."""\n    return a + b\n',
    "gpuops/device/queue.cuh": "int q;\n",
    "gpuops/_cuda.py": "A = 1\n",
    "gpuops/sssp/search.cu": "int s;\n",
}


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Commit BEFORE; returns a function that commits changed files and lists a record of the commit before them."""
    monkeypatch.setattr(record_ages, "ROOT", tmp_path)
    record_ages.changed_files.cache_clear()

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--message", "a")
        return git("rev-parse", "HEAD")

    def listed(after, name="som-gpu.json", records=(), commit_of=None):
        commit(after)
        facts = {
            "commit": commit_of or f"{first}-dirty",
            "date": "2026-11-23",
            "device": "GPU",
            "records": list(records),
        }
        path = tmp_path / name
        path.write_text(json.dumps(facts))
        return "\n".join(record_ages.describe([path], files=True))

    git("init", "--quiet")
    first = commit(BEFORE)
    return listed


def test_comments_docstrings_and_moves_are_no_changes(history, tmp_path):
    (tmp_path / "gpuops/som/moved.py").unlink()
    said = history({
        "gpuops/som/bmu.cu": "/* screens\n   twice */ int f() {\n  return 1;  // one\n}\n",
        "gpuops/som/placed.py": BEFORE["gpuops/som/moved.py"],
        "gpuops/som/update.py": '"""Sums of units."""\n\n\n# adds\ndef add(a, b):\n    return a + b\n',
        "gpuops/sssp/search.cu": "int t;\n",
    })  # fmt: skip
    assert "som-gpu.json: " in said
    assert "; no change in gpuops/som, benchmarks/kernels" in said


def test_changed_code_is_listed(history, tmp_path):
    (tmp_path / "gpuops/som/moved.py").unlink()
    after = {
        "gpuops/som/bmu.cu": "int f() { return 2; }\n",
        "gpuops/som/new.cu": "int n;\n",
        "gpuops/_cuda.py": "A = 2\n",
    }
    said = history(after).splitlines()
    assert "; 3 changed files in gpuops/som" in said[0]
    assert [line.strip() for line in said[1:]] == ["gpuops/som/bmu.cu", "gpuops/som/moved.py", "gpuops/som/new.cu"]


def test_records_of_a_gpu_also_depend_on_the_shared_headers(history):
    said = history({"gpuops/_cuda.py": "A = 2\n"}, records=[{"sm_clock_mhz": 1980}])
    assert "; 1 changed file in gpuops/som, benchmarks/kernels, gpuops/device, gpuops/_cuda.py" in said


def test_the_longest_suite_counts_and_files_of_no_suite_measure_everything(history):
    assert "no change in gpuops/sssp, gpuops/label_setting" in history({"a": ""}, "sssp-table-gpu.json")
    assert "; no change in gpuops" in history({"b": ""}, "searches-gpu.json")


def test_a_commit_that_is_not_there(history):
    said = history({"a": ""}, commit_of="0123456789ab")
    assert "; not in the history, so changes are unknown in gpuops/som" in said


def test_each_suite_has_its_code():
    from benchmarks.pieces import SPLITS

    assert record_ages.MEASURED.keys() == SPLITS.keys()
    root = Path(__file__).parents[2]
    for path in (*record_ages.SHARED, *(path for paths in record_ages.MEASURED.values() for path in paths)):
        assert (root / path).exists(), path
