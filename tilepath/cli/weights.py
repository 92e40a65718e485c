"""The option `--weight` of commands that read a graph whose store has several weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def chosen_weight(argument: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option `--weight` to a command; `argument` is the name of its argument that is the path of the graph."""

    def with_option(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(*, weight: str | None, **options: Any) -> Any:
            if weight is not None:
                options[argument] += f"#{weight}"  # as `pipelines.stores.named_weights` reads it
            return command(**options)

        return click.option(
            "--weight",
            metavar="NAME",
            help=f"Use these weights of {_metavar(argument)}, such as length, if it is a graph with several weights.",
        )(call)

    return with_option


def _metavar(argument: str) -> str:
    return "STORE" if argument == "network" else argument.upper()
