"""Functions called in a child process, which ends with the wish for its result, and with its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pipelines.workers.child import in_child

HOLD_THE_LOCK = "import ctypes; ctypes.PyDLL(None).sleep(600)"


def double(values):
    print("in between")  # does not mix with the result
    return 2 * values


def fail(text):
    raise KeyError(text)


def hang(note):
    """Hold the interpreter's lock, as METIS does."""
    Path(note).write_text(str(os.getpid()))
    exec(HOLD_THE_LOCK)


def pid_in(note):
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    return int(note.read_text())


def gone(pid):
    for _ in range(1000):
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_results_and_errors_come_back():
    values = np.arange(300_000)  # more than a pipe holds
    np.testing.assert_array_equal(in_child(lambda: None, double, values), 2 * values)
    with pytest.raises(KeyError, match="of the child"):
        in_child(lambda: None, fail, "of the child")


def test_the_child_is_killed_when_its_result_is_no_longer_wanted(tmp_path):
    class Unwanted(Exception):
        pass

    def wanted():
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise Unwanted

    with pytest.raises(Unwanted):
        in_child(wanted, hang, str(tmp_path / "pid"))
    assert gone(pid_in(tmp_path / "pid"))


def test_a_killed_child_is_an_error(tmp_path):
    def wanted():
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    with pytest.raises(ChildProcessError, match="the process that called hang ended by signal 9; if the memory"):
        in_child(wanted, hang, str(tmp_path / "pid"))


def test_a_child_does_not_outlive_its_parent(tmp_path):
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_child
from pipelines.workers.child import in_child
in_child(lambda: None, test_child.hang, {str(tmp_path / "pid")!r})
"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    child = pid_in(tmp_path / "pid")
    parent.kill()
    parent.wait()
    assert gone(child)
