"""Notebooks: whether this process runs cells, and a line that a cell shows and replaces, without filling the page."""

from __future__ import annotations

import sys
import time
from typing import Any

SECONDS = 0.2  # least time between two texts of a line, since each text is a message to the browser


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook. IPython in a terminal is not a kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


class NotebookLine:
    """A line of text in the output of the cell that runs."""

    def __init__(self) -> None:
        from IPython.display import display

        self._shown = time.monotonic()
        self._handle: Any = display(_plain(""), raw=True, display_id=True)

    def show(self, text: str, at_once: bool = False) -> None:
        """Replace the text, unless it was replaced a moment ago."""
        now = time.monotonic()
        if at_once or now - self._shown > SECONDS:
            self._shown = now
            self._handle.update(_plain(text), raw=True)


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}
