"""The folder in which Numba keeps compiled functions, where the usual folders are not writable.

Numba keeps a compiled function beside its module, or else in the user's cache. In batch jobs and containers, often
neither is writable: the modules belong to another user, and the home is missing. Numba then compiles nothing.
"""

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path


def use_writable_folder() -> None:
    """Let Numba keep compiled functions in a temporary folder, and warn, if no usual folder is writable."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if any(map(_writable, (Path(__file__).parent, home, Path(os.environ.get("NUMBA_CACHE_DIR") or home)))):
        return
    folder, process = tempfile.mkdtemp(prefix="tilepath-"), os.getpid()
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


def _writable(folder: Path) -> bool:
    """Return whether files can be made in `folder`, or in the next folder above it that exists."""
    there = next((each for each in (folder, *folder.parents) if each.exists()), None)
    return folder.is_absolute() and there is not None and os.access(there, os.W_OK)
