"""The commands of the site: a list of all, with the first sentence of each help, and the options of each command.

sphinx_click describes the options. Their values are written as `tilepath COMMAND --help` writes them. The options of
a cluster are the same for many commands, so they are folded up. Arguments are left out: the usage shows them.
"""

import itertools
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
from docutils import nodes
from sphinx.application import Sphinx

from tilepath.cli.help_pages import ClusterOption

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


def option_lines(context: click.Context, option: click.Option, lines: list[str]) -> list[str]:
    """Put the value of an option as in `--help` in place of the one that sphinx_click writes."""
    if option.is_flag or option.count:
        return lines
    value = option.make_metavar(context).strip()
    if isinstance(option.type, click.Choice) and not option.metavar:
        value = "|".join(option.type.choices)
        lines = [line for line in lines if not line.lstrip().startswith(":options:")]
    return [f".. option:: {', '.join([*option.opts, *option.secondary_opts])} {value}", *lines[1:]]


def fold_cluster_options(_app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Write the values of options as in `--help`, and fold up the options for a cluster below the others."""
    starts = [i for i, line in enumerate(lines) if line.startswith(".. option::")]
    options = [each for each in context.command.params if isinstance(each, click.Option) and not each.hidden]
    written = [lines[begin:end] for begin, end in itertools.pairwise([*starts, len(lines)])]
    own, of_cluster = [], []
    for option, described in zip(options, written, strict=True):
        (of_cluster if isinstance(option, ClusterOption) else own).extend(option_lines(context, option, described))
    lines[:] = own
    if of_cluster:
        lines += [".. dropdown:: Where to compute", ""]
        lines += [*textwrap.indent("\n".join(of_cluster), "    ").splitlines(), ""]


def link_pages(_app: Sphinx, _context: click.Context, lines: list[str]) -> None:
    """Turn the names of pages, such as docs/maps.md, into links."""
    lines[:] = [re.sub(r"\bdocs/([\w/-]+)\.md", r":doc:`/\1`", line) for line in lines]


def leave_out(_app: Sphinx, _context: click.Context, lines: list[str]) -> None:
    lines.clear()


def offer_anchors(app: Sphinx, document: nodes.document) -> None:
    """Let links of pages lead to commands of groups, too: MyST knows only the anchors of the upper headings."""
    if app.env.docname.startswith("reference/commands/"):
        known = app.env.metadata[app.env.docname]["myst_slugs"]
        for section in document.findall(nodes.section):
            known.update((anchor, (None, anchor, anchor)) for anchor in section["ids"])


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx_click")
    app.connect("sphinx-click-process-options", fold_cluster_options)
    app.connect("sphinx-click-process-options", link_pages)
    app.connect("sphinx-click-process-description", link_pages)
    app.connect("sphinx-click-process-arguments", leave_out)
    app.connect("source-read", listed)
    app.connect("doctree-read", offer_anchors)
