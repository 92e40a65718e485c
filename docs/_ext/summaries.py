"""A table of the names of a page, with the first sentence of each docstring, above the first section."""

import re

from sphinx.application import Sphinx

BLOCK = re.compile(r"^```\{eval-rst\}\n\.\. currentmodule:: (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^\.\. auto(?:function|class|exception):: (\S+)", re.MULTILINE)


def table(text: str) -> str:
    names = [f"{module}.{name}" for module, block in BLOCK.findall(text) for name in NAME.findall(block)]
    rows = "".join(f"   ~{name}\n" for name in names)
    return f"```{{eval-rst}}\n.. autosummary::\n   :nosignatures:\n\n{rows}```\n\n"


def summarize(_app: Sphinx, page: str, source: list[str]) -> None:
    found = re.search(r"^(?:## |```)", source[0], re.MULTILINE)
    if page.startswith("reference/python/") and found and BLOCK.search(source[0]):
        source[0] = source[0][: found.start()] + table(source[0]) + source[0][found.start() :]


def setup(app: Sphinx) -> None:
    app.connect("source-read", summarize)
