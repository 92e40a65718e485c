"""Detect a script that would start worker processes without ``if __name__ == "__main__":``.

Every worker process imports the main script again. An unguarded call of `start` would then start another cluster in
every worker. Before any process is started, the call counts as unguarded if the running statement of the main script
is not inside a condition. A call that this test misses is refused later, when a worker process reaches `start` while it
imports the script.
"""

from __future__ import annotations

import ast
import multiprocessing
import sys
from types import FrameType

import dask.config

from clusters.errors import ClusterError

_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.Match, ast.While)


def refuse_unguarded(processes: bool) -> None:
    """Raise ClusterError if the call to `start` is unguarded, or if this is a worker process importing the script."""
    inside = getattr(multiprocessing.current_process(), "_inheriting", False)
    spawning = dask.config.get("distributed.worker.multiprocessing-method", "spawn") != "fork"
    if inside or (processes and spawning and _unguarded()):
        raise ClusterError(
            "worker processes import the main script again, so a script must call start() under"
            ' `if __name__ == "__main__":`; otherwise every worker would start a cluster of its own'
        )


def _unguarded() -> bool:
    frame = _frame_of_main()
    if frame is None:
        return False
    try:
        with open(frame.f_code.co_filename, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, ValueError, SyntaxError):  # the source of the main script is not available
        return False
    return not any(
        isinstance(node, _CONDITIONS) and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
        for node in ast.walk(tree)
    )


def _frame_of_main() -> FrameType | None:
    """Return the frame of the running main script; None if it is not a file that worker processes import."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            return frame if frame.f_code.co_filename == file else None
        frame = frame.f_back
    return None
