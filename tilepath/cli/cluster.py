"""The cluster options of commands that compute, and the client that these options ask for."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from gpuops.devices import DEVICES
from pipelines.workers.progress import Progress, speaking
from tilepath.cli.help_pages import ClusterOption
from tilepath.cli.messages import in_options_of
from tilepath.cli.quantities import NUMBER

COORDINATION = (
    "Coordinate several workers by Dask's scheduler or by signals between workers; by default the run chooses."
)

OpenClient: TypeAlias = Callable[..., AbstractContextManager[Any]]
ChooseDevice: TypeAlias = Callable[[], tuple[str, str]]

_option = functools.partial(click.option, cls=ClusterOption)
DEVICE = _option(
    "--device",
    type=click.Choice(DEVICES),
    default="auto",
    show_default=True,
    help="auto: a GPU if there is one; without a cluster, and for `sssp`, only if the work is also large enough.",
)
OPTIONS = (
    DEVICE,
    _option("--workers", type=click.IntRange(min=1), help="Workers to start, or to wait for."),
    _option("--processes", is_flag=True, help="Start CPU workers as separate processes."),
    _option("--protocol", type=click.Choice(["tcp", "ucx"]), help="How workers communicate; ucx uses NVLink."),
    _option("--scheduler-file", type=click.Path(), help="Join the cluster of a batch job by its scheduler file."),
    _option("--scheduler", metavar="ADDRESS", help="Join the running cluster at ADDRESS, such as `tcp://host:8786`."),
    _option(
        "--timeout",
        type=NUMBER,
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Wait at most SECONDS for the scheduler and the workers.",
    ),
    _option(
        "--dashboard",
        is_flag=True,
        help="Serve Dask's dashboard for the started workers, or find that of the joined cluster; print its address.",
    ),
)

NAMES = ("device", "workers", "processes", "protocol", "scheduler_file", "scheduler", "timeout", "dashboard")


def on_cluster(call: Callable[..., Any]) -> Callable[..., Any]:
    """Add the cluster options to a command.

    `call` gets the argument `open_client`, a function that returns a client of the requested cluster as a context
    manager. The command calls it after it has checked its stores, so that no cluster is started in vain; a command that
    knows how long its work takes passes a function that chooses the device.
    """

    @functools.wraps(call)
    def with_client(**options: Any) -> Any:
        cluster = {name: options.pop(name) for name in NAMES}
        command = click.get_current_context().command
        with speaking(lambda note: in_options_of(command, note)):
            return call(open_client=functools.partial(_open_client, cluster), **options)

    for option in reversed(OPTIONS):
        with_client = option(with_client)
    return with_client


def with_dry_run(call: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--dry-run` and `--json` to a command whose run states a plan."""

    @functools.wraps(call)
    def or_plan(dry_run: bool, as_json: bool, **options: Any) -> Any:
        if not dry_run:
            if as_json:
                raise click.UsageError("--json prints the plan of --dry-run; give both")
            return call(**options)
        from pipelines.workers.capacity import DoesNotFitError
        from pipelines.workers.plans import Plan, planned, states_plan

        def show(plan: Plan) -> None:
            click.echo(json.dumps(asdict(plan), indent=2) if as_json else plan.text)

        try:
            show(planned(states_plan(call), **options))
        except DoesNotFitError as error:
            if error.plan is not None:
                show(error.plan)
            raise

    as_json = click.option("--json", "as_json", is_flag=True, help="Print the plan of --dry-run as JSON, for scripts.")
    dry_run = click.option("--dry-run", is_flag=True, help="Print the plan of the run, and do not begin the run.")
    return dry_run(as_json(or_plan))


def is_asked_for() -> bool:
    """Return True if the command line has a cluster option, for a command that also runs without a cluster."""
    context = click.get_current_context()
    return any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in NAMES)


def _open_client(options: dict[str, Any], choose: ChooseDevice | None = None) -> Any:
    """Join the cluster that the options name, or start one; return its client, which is a context manager.

    If the machine has a GPU and the options leave it open which device computes, `choose` returns "cpu" or "gpu" and
    the reason, which is printed. Without `choose`, a GPU computes.
    """
    from clusters import join, start
    from clusters.gpus import missing, visible

    if options["scheduler_file"] is not None and options["scheduler"] is not None:
        raise click.UsageError("--scheduler-file and --scheduler both name a cluster to join; give one of them")
    if options["scheduler_file"] is not None or options["scheduler"] is not None:
        client = join(options["scheduler_file"], options["scheduler"], options["timeout"], options["workers"])
        return _with_dashboard(client, options["dashboard"])
    device = options["device"]
    open_to_choice = device == "auto" and not any(options[name] for name in ("workers", "processes", "protocol"))
    if choose is not None and open_to_choice and visible() and missing() is None:
        device, reason = choose()
        click.echo(f"On the {device.upper()}: {reason}", err=True)
    if device != "cpu" and visible() and _is_cold():
        click.echo(
            "First use of the GPU here: kernels are compiled when first used. `tilepath warm` compiles all in advance.",
            err=True,
        )
    with Progress(1, "workers") as shown:
        shown.stage("starting workers")
        client = start(
            device=device,
            workers=options["workers"],
            processes=options["processes"] or None,
            protocol=options["protocol"],
            dashboard=options["dashboard"],
            timeout=options["timeout"],
        )
    return _with_dashboard(client, options["dashboard"])


def _is_cold() -> bool:
    from gpuops.warming import is_cold  # a command that needs no GPU does not wait for this import

    return is_cold()


def _with_dashboard(client: Any, shown: bool) -> Any:
    if shown:
        click.echo(f"Dashboard: {client.dashboard_link}", err=True)
    return client
