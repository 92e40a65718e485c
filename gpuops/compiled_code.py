"""The folder in which Numba keeps compiled functions, where the usual folders are not writable.

Numba keeps a compiled function beside its module, or else in the user's cache. In batch jobs and containers, often
neither is writable: the modules belong to another user, and the home is missing. Numba then compiles nothing.
"""

import os
import sys
import warnings


def use_writable_folder() -> None:
    """Let Numba keep compiled functions in a temporary folder, and warn, if no usual folder is writable."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    given = os.environ.get("NUMBA_CACHE_DIR")
    usual = [os.path.dirname(__file__), home, *([os.path.abspath(given)] if given else [])]
    if any(map(_writable, usual)):
        return
    import atexit  # these imports take milliseconds, and are seldom needed
    import shutil
    import tempfile

    try:
        folder, process = tempfile.mkdtemp(prefix="tilepath-"), os.getpid()
    except OSError:  # no folder is writable at all; whatever Numba does not compile still works
        return
    os.environ["NUMBA_CACHE_DIR"] = folder  # for workers as well
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = folder

    def remove() -> None:
        if os.getpid() == process:  # not in a forked process
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    warnings.warn(
        "compiled functions cannot be kept, so every run compiles them again; set NUMBA_CACHE_DIR to a writable folder",
        stacklevel=4,  # the import of tilepath
    )


def _writable(folder: str) -> bool:
    """Return whether files can be made in `folder`, or in the next folder above it that exists."""
    if not os.path.isabs(folder):  # "~/.cache" of a user without a home
        return False
    while not os.path.exists(folder):  # or may not be looked into
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
