"""Names of graphs that are generated whenever they are read, such as ``rmat:28``, and not stored.

No store knows how to generate a graph: `pipelines` enters the functions that do in `OPENERS`.
"""

import os
import re
from collections.abc import Callable
from typing import Any

OPENERS: dict[str, Callable[[str], Any]] = {}  # functions that open a graph by its name, by the word before the colon


def generator_of(path: str | os.PathLike[str]) -> Callable[[str], Any] | None:
    """Return the function that opens the generated graph called `path`, or None if `path` does not name one."""
    found = re.match(r"(\w+):\d+(:|$)", os.fspath(path))
    return None if found is None or os.path.exists(path) else OPENERS.get(found[1])
