"""The cluster of a command that computes: its options, and the client that they ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from pipelines.workers.interruption import asked, boundaries
from tilepath.cli.warm import is_cold

OpenClient: TypeAlias = Callable[[], AbstractContextManager[Any]]

OPTIONS = (
    click.option("--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", help="Where to compute."),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Workers to start, or to wait for. All pairs may use fewer GPUs, and says why.",
    ),
    click.option("--processes", is_flag=True, help="Start CPU workers as separate processes."),
    click.option("--protocol", type=click.Choice(["tcp", "ucx"]), help="How workers communicate; ucx uses NVLink."),
    click.option("--scheduler-file", type=click.Path(), help="Join the cluster of a batch job by its file."),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Join the running cluster at ADDRESS, such as tcp://host:8786."
    ),
)

NAMES = ("device", "workers", "processes", "protocol", "scheduler_file", "scheduler")


def on_cluster(call: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a cluster.

    `call` is handed `open_client`, which opens a client (a context manager) of the cluster that the options ask for:
    not before the command has looked at its stores.
    """

    @functools.wraps(call)
    def with_client(**options: Any) -> Any:
        cluster = {name: options.pop(name) for name in NAMES}
        return call(open_client=functools.partial(_client, cluster), **options)

    for option in reversed(OPTIONS):
        with_client = option(with_client)
    return with_client


def is_asked_for() -> bool:
    """Whether the command line has an option of a cluster, for a command that can do without one."""
    context = click.get_current_context()
    return any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in NAMES)


@contextmanager
def _client(options: dict[str, Any]) -> Iterator[Any]:
    """A client of the cluster the options ask for: joined if one is named, else started."""
    with boundaries():  # workers that are starting cannot be stopped in good order
        client = _open_client(options)
        interrupted = asked()
    with client:
        if interrupted:
            raise KeyboardInterrupt
        yield client


def _open_client(options: dict[str, Any]) -> Any:
    from clusters import join, start
    from clusters.gpus import visible

    if options["scheduler_file"] or options["scheduler"]:
        return join(scheduler_file=options["scheduler_file"], address=options["scheduler"], workers=options["workers"])
    if options["device"] != "cpu" and is_cold() and visible():
        click.echo(
            "First use of the GPU here: kernels are compiled as they are needed. `tilepath warm` does it ahead.",
            err=True,
        )
    return start(
        device=options["device"],
        workers=options["workers"],
        processes=options["processes"] or None,
        protocol=options["protocol"],
    )
