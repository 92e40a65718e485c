"""Runs in a notebook: one line of progress for a cell, and a stop button that stops at a boundary."""

import signal
import sys
from types import ModuleType, SimpleNamespace

import pytest

from pipelines.workers import notebook
from pipelines.workers.interruption import Interrupted, boundaries, stop_if_asked
from pipelines.workers.progress import Progress


@pytest.fixture
def displays(monkeypatch):
    """The texts that a cell shows, one list for each display; this process plays the kernel of a notebook."""
    displays = []

    def display(data, raw, display_id):
        displays.append([data["text/plain"]])
        return SimpleNamespace(update=lambda data, raw: displays[-1].append(data["text/plain"]))

    ipython, of_display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel="a kernel")
    of_display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    return displays


def test_a_cell_shows_one_line_which_is_replaced(displays, monkeypatch, capsys):
    monkeypatch.setattr(notebook, "SECONDS", 0)
    with Progress(4, "samples") as shown:
        shown.note("a note")
        shown.stage("training")
        for _ in range(4):
            shown.advance(1)
    (texts,) = displays
    assert texts[0] == ""
    assert texts[3].startswith("training ████████████░░░░░░░░░░░░ 50%, ")
    assert texts[-1].startswith("done after ")
    assert capsys.readouterr() == ("a note\n", "")
    with pytest.raises(ZeroDivisionError), Progress(4, "samples"):
        _ = 1 / 0
    assert displays[-1][-1].startswith("stopped after ")


def test_a_cell_is_not_sent_more_texts_than_can_be_read(displays):
    with Progress(10_000, "samples") as shown:
        for _ in range(10_000):
            shown.advance(1)
    assert len(displays[0]) < 1000
    with Progress(1, "samples", show=False):
        pass
    assert len(displays) == 1


def test_ipython_in_a_terminal_is_no_notebook(displays, monkeypatch):
    assert notebook.in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: object())
    assert not notebook.in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert not notebook.in_notebook()


@pytest.mark.usefixtures("displays", "answers_ctrl_c")
def test_the_stop_button_stops_at_a_boundary_and_says_how_to_go_on(capsys):
    before = signal.getsignal(signal.SIGINT)
    with boundaries():
        signal.raise_signal(signal.SIGINT)
        assert "Stopping at the next commit; the stop button again" in capsys.readouterr().out
        with pytest.raises(Interrupted) as stopped:
            stop_if_asked()
    (shown,) = stopped.value._render_traceback_()
    assert "the same call with resume=True continues" in shown
    assert signal.getsignal(signal.SIGINT) is before
