"""A table of the names of each section, with the first sentence of each docstring, above their descriptions."""

import re

from sphinx.application import Sphinx

BLOCK = re.compile(r"^```\{eval-rst\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^\.\. auto(?:function|class|exception):: (\S+)", re.MULTILINE)


def with_summary(block: re.Match[str]) -> str:
    """Put the table above the names, below the name of their module."""
    names = NAME.findall(block[1])
    if len(names) < 2:
        return block[0]
    first = re.search(r"^\.\. auto", block[1], re.MULTILINE)
    assert first is not None
    table = ".. autosummary::\n   :nosignatures:\n\n" + "".join(f"   {name}\n" for name in names) + "\n"
    return "```{eval-rst}\n" + block[1][: first.start()] + table + block[1][first.start() :] + "```"


def summarize(_app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("reference/python/"):
        source[0] = BLOCK.sub(with_summary, source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", summarize)
