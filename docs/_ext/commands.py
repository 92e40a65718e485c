"""The list of commands of the site: each command with the first sentence of its help, grouped by page."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "reference/commands"


def rows(page: str, name: str, command: click.Command) -> Iterator[str]:
    """Yield a row of a table for a command, or for each command of a group. `tilepath` is left out."""
    if isinstance(command, click.Group):
        for each, member in command.commands.items():
            yield from rows(page, f"{name} {each}", member)
    else:
        address = f"{page}.html#{name.replace(' ', '-')}"
        shown = name.removeprefix("tilepath ").replace(" ", "&nbsp;")
        yield f'| <a href="{address}"><code>{shown}</code></a> | {command.get_short_help_str(200)} |'


def listed(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add a table of the commands of each page to the page that lists them."""
    if page != "reference/commands/index":
        return
    (pages,) = re.findall(r"```\{toctree\}.*?\n\n(.*?)```", source[0], re.DOTALL)
    for each in re.findall(r"<(\w+)>", pages):
        text = (FOLDER / f"{each}.md").read_text()
        title = text.partition("\n")[0].removeprefix("# ").removeprefix("Commands: ")
        source[0] += f"\n## {title[0].upper()}{title[1:]}\n\n| command | what it does |\n|---|---|\n"
        for module, name, called in re.findall(r"click:: ([\w.]+):(\w+)\n +:prog: (.*)", text):
            source[0] += "\n".join(rows(each, called, getattr(import_module(module), name))) + "\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", listed)
