"""The layout of help pages: commands in sections with whole summaries, cluster options in a section, an example.

Click prints one list of commands, with shortened summaries, and one list of options. cloup offers sections, but takes
as long to import as Click itself, and `tilepath --help` should print at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import click

from tilepath.cli.places import protected


class ClusterOption(click.Option):
    """An option of the section "Where to compute"."""


class Page(click.Command):
    """A command whose help page has a section of cluster options, and an example.

    It refuses empty paths, and an option that is given twice, of which Click would ignore the first.
    """

    def __init__(self, *arguments: Any, example: str = "", **options: Any):
        super().__init__(*arguments, **options)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = protected(args)
        left = super().parse_args(ctx, list(args))
        self._refuse_repeated(self.make_parser(ctx).parse_args(args)[2], ctx)
        for param in self.params:
            if isinstance(param.type, click.Path) and ctx.params.get(param.name or "") == "":
                raise click.BadParameter("the name is empty; give the name of a file or a store", ctx, param)
        return left

    @staticmethod
    def _refuse_repeated(order: list[click.Parameter], ctx: click.Context) -> None:
        """Raise UsageError for an option in `order` twice; a plain flag, such as --overwrite, may be repeated."""
        for param in order:
            flag = isinstance(param, click.Option) and param.is_flag and not param.secondary_opts
            if isinstance(param, click.Option) and not (flag or param.multiple) and order.count(param) > 1:
                names = " and ".join([*param.opts, *param.secondary_opts])
                raise click.UsageError(f"{names}: give this option once; it is here {order.count(param)} times", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Options": [], "Where to compute": []}
        for option in self.get_params(ctx):
            row = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if row is not None:
                rows["Where to compute" if isinstance(option, ClusterOption) else "Options"].append(row)
        for title, of_section in rows.items():
            if of_section:
                with formatter.section(title):
                    formatter.write_dl(of_section)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.example:
            with formatter.section("Example"):
                formatter.write_text(f"\b\n{self.example}")
        super().format_epilog(ctx, formatter)


class Pages(click.Group):
    """A group with the commands of `sections`, by title, and a help page with these sections; by default, one of all.

    `replaced` has the command to use in place of each former command.
    """

    command_class = Page

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Sequence[click.Command]] | None = None,
        replaced: Mapping[str, str] | None = None,
        **options: Any,
    ):
        super().__init__(*arguments, **options)
        self.sections, self.replaced = sections, replaced or {}
        for command in chain.from_iterable((sections or {}).values()):
            self.add_command(command)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] in self.replaced and not ctx.resilient_parsing:
            ctx.fail(f"There is no command '{args[0]}' any more; use `{self.replaced[args[0]]}`")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        alphabetical = [command for _, command in sorted(self.commands.items())]
        for title, commands in (self.sections or {"Commands": alphabetical}).items():
            with formatter.section(title):
                formatter.write_dl([(each.name or "", each.get_short_help_str(limit=1000)) for each in commands])


def page(name: str | None = None, **options: Any) -> Callable[[Callable[..., None]], Page]:
    """Return a decorator that makes a function a `Page`."""
    return click.command(name, cls=Page, **options)
