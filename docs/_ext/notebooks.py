"""Each tutorial as a notebook of Jupyter: programs and commands become cells that run, everything else becomes text."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "tutorials"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
TAB = re.compile(r"^:::\{tab-item\} (.+)$", re.MULTILINE)
TABS = re.compile(r"^:::.*\n|^:sync:.*\n", re.MULTILINE)


def plain(text: str) -> str:
    """Return text without pictures and links, which lead to other pages of the site, and with the names of tabs."""
    text = TABS.sub("", TAB.sub(r"*\1*", text))
    return re.sub(r"!?\[([^]]*)\]\([^)]*\)", lambda link: "" if link[0][0] == "!" else link[1], text).strip()


def cells(text: str) -> Iterator[dict[str, object]]:
    before, *rest = BLOCK.split(text)
    yield {"cell_type": "markdown", "metadata": {}, "source": plain(before)}
    for language, program, after in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        source = f"%%sh\n{program}" if language == "sh" else program
        yield {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        if plain(after):
            yield {"cell_type": "markdown", "metadata": {}, "source": plain(after)}


def offer(_app: Sphinx, page: str, source: list[str]) -> None:
    """Link the notebook below the first paragraph of a tutorial."""
    if page.startswith("tutorials/"):
        link = f'<a href="{Path(page).name}.ipynb" download>Download this page as a notebook.</a>'
        title, first, rest = source[0].split("\n\n", 2)
        source[0] = f"{title}\n\n{first} {link}\n\n{rest}"


def write(app: Sphinx, error: Exception | None) -> None:
    for page in FOLDER.glob("*.md") if error is None and app.builder.name == "html" else ():
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = {"cells": [*cells(page.read_text())], "metadata": {"kernelspec": kernel}}
        out = Path(app.outdir) / "tutorials" / f"{page.stem}.ipynb"
        out.write_text(json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 4}, indent=1))


def setup(app: Sphinx) -> None:
    app.connect("source-read", offer)
    app.connect("build-finished", write)
