"""Progress of long work: stage, rate, time left.

A terminal gets one live line on standard error, a log rare lines, and a cell of a notebook one line that is replaced.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipelines.workers.notebook import NotebookLine, in_notebook

LINE_SECONDS = 10.0  # seconds between two lines where there is no terminal, as in the log of a batch job
_in_words: Callable[[str], str] = str  # turns a note into the words of the interface that is in use


@contextmanager
def speaking(words: Callable[[str], str]) -> Iterator[None]:
    """Return a context in which notes are printed as `words` returns them, such as with options of a command."""
    global _in_words
    before, _in_words = _in_words, words
    try:
        yield
    finally:
        _in_words = before


class Progress:
    """Shows the progress of a run; a context manager.

    Parameters
    ----------
    total : int
        Total units of work.
    unit : str
        Name of a unit, such as "relaxations", for the rate.
    show : bool or None
        None shows progress if standard error is a terminal, and in a notebook.
    """

    def __init__(self, total: int, unit: str, show: bool | None = None):
        self.total, self.unit = max(total, 1), unit
        self.show = sys.stderr.isatty() or in_notebook() if show is None else show
        self._done = 0
        self._begin = self._line = time.monotonic()
        self._counted = 0
        self._stage = "starting"
        self._live: Any = None
        self._cell: NotebookLine | None = None

    def __enter__(self) -> Progress:
        self._entered = time.monotonic()
        if self.show and in_notebook():
            self._cell = NotebookLine()
        elif self.show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Live

            columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[facts]}"))
            self._live = Live(*columns, console=Console(stderr=True), transient=True)
            self._live.start()
            self._task = self._live.add_task(self._stage, total=self.total, facts="")
        return self

    def __exit__(self, *exc: Any) -> None:
        if self._live is not None:
            self._live.stop()
        if self._cell is not None:
            took = duration(time.monotonic() - self._entered)
            self._cell.show(f"{'stopped' if exc[0] else 'done'} after {took}", at_once=True)

    def note(self, text: str) -> None:
        """Print a line that stays."""
        text = _in_words(text)
        if self._live is not None:
            self._live.console.print(text, highlight=False, soft_wrap=True)
        elif self.show:
            # A notebook shows standard error on red ground, as if something were wrong.
            print(text, file=sys.stderr if self._cell is None else sys.stdout, flush=True)

    def start(self, done: int) -> None:
        """Begin, or begin again, with `done` units already done; the rate counts from here."""
        self._done, self._counted, self._begin = done, 0, time.monotonic()

    def stage(self, text: str) -> None:
        """Show the name of the current stage of the work."""
        self._stage = text
        self._refresh()

    def advance(self, units: int) -> None:
        """Count `units` more as done."""
        self._done += units
        self._counted += units
        self._refresh()

    def _refresh(self) -> None:
        if not self.show:
            return
        if self._live is not None:
            self._live.update(self._task, completed=self._done, description=self._stage, facts=self._facts())
        elif self._cell is not None:
            part = min(1.0, self._done / self.total)
            self._cell.show(f"{self._stage} {_bar(part)} {self._facts()}")
        elif time.monotonic() - self._line > LINE_SECONDS:
            self._line = time.monotonic()
            print(f"{self._stage}: {self._facts()}", file=sys.stderr, flush=True)

    def _facts(self) -> str:
        rate = self._counted / max(time.monotonic() - self._begin, 1e-9)
        facts = f"{100 * self._done / self.total:.0f}%"
        if rate > 0 and self._done < self.total:
            left = (self.total - self._done) / rate
            facts += f", {with_prefix(rate)} {self.unit}/s, {duration(left)} left"
        return facts


def _bar(part: float, width: int = 24) -> str:
    """Return a bar of letters.

    >>> _bar(0.5, 8)
    '████░░░░'
    """
    full = round(part * width)
    return "█" * full + "░" * (width - full)


def with_prefix(value: float) -> str:
    """Return a number with an SI prefix.

    >>> with_prefix(61_200_000_000), with_prefix(950), with_prefix(999_700)
    ('61.2 G', '950', '1 M')
    """
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * factor:  # else it is rounded to 1e+03 of the next unit
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g}"


def estimated(seconds: float) -> str:
    """Return an estimate as text: between two times of one figure, since the rates of a plan are not known better.

    >>> estimated(74_280), estimated(159), estimated(0.32), estimated(0.0284), estimated(2)
    ('20 to 30 h', '2 to 3 min', '0.3 to 0.4 s', '20 to 30 ms', 'about 2 s')
    """
    value, unit = _in_one_unit(seconds)
    step = 10.0 ** math.floor(math.log10(value))
    low, high = (end * step for end in (math.floor(value / step), math.ceil(value / step)))
    return f"{low:g} to {high:g} {unit}" if low < high else f"about {low:g} {unit}"


def rounded(seconds: float) -> str:
    """Return an estimate as text of two figures, to compare it with others of the same model.

    >>> rounded(467), rounded(59.3), rounded(0.1432), rounded(0)
    ('7.8 min', '59 s', '0.14 s', '1 ms')
    """
    value, unit = _in_one_unit(seconds)
    return f"{float(f'{value:.2g}'):g} {unit}"


def _in_one_unit(seconds: float) -> tuple[float, str]:
    """Return a number and the unit of a duration; it is a millisecond at least."""
    for least, length, unit in ((2 * 86400, 86400, "days"), (3600, 3600, "h"), (60, 60, "min"), (0.1, 1, "s")):
        if seconds >= least:
            return seconds / length, unit
    return max(1.0, seconds * 1e3), "ms"


def duration(seconds: float) -> str:
    """Return seconds as text for the user.

    >>> duration(0.0023), duration(0.62), duration(75), duration(7300)
    ('2 ms', '0.6 s', '1 min 15 s', '2 h 1 min')
    >>> duration(59.9), duration(119.7), duration(3599.8)
    ('1 min 0 s', '2 min 0 s', '1 h 0 min')
    """
    if seconds < 0.05:
        return f"{max(1, round(1000 * seconds))} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)  # rounded before it is divided, so that no remainder is 60 s
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
