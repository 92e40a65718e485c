"""The command `tilepath`: its subcommands, and how errors and Ctrl-C end it."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import warnings

import click

from pipelines.workers.interruption import Interrupted, handling
from tilepath.cli.answers import path, stats
from tilepath.cli.assembly import assemble
from tilepath.cli.euler import euler
from tilepath.cli.export import export
from tilepath.cli.graph_operations import graph
from tilepath.cli.graphs import generate_graph, import_file
from tilepath.cli.od import od
from tilepath.cli.partition import partition
from tilepath.cli.paths import apsp, sssp
from tilepath.cli.picture import picture
from tilepath.cli.sequence import sequence
from tilepath.cli.som import som
from tilepath.cli.stores import info, verify
from tilepath.cli.warm import warm


def main() -> None:
    """Run the command; a warning, and an error a user can mend, is one line, not a traceback."""
    warnings.showwarning = lambda message, *_about, **_options: click.echo(f"Warning: {message}", err=True)
    try:
        with handling():
            tilepath(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        # Writes in hand, which no commit counts, end with the process; asyncio would report each of them at exit.
        logging.getLogger("asyncio").disabled = True
        message = "Interrupted."
        if isinstance(error.__cause__ or error, Interrupted):
            message += f" What is committed is kept; resume with: {_command_to_go_on(sys.argv[1:])}"
        click.echo(message, err=True)
        sys.exit(130)
    except Exception as error:
        from clusters import ClusterError

        if os.environ.get("TILEPATH_TRACEBACK") or not isinstance(
            error, ValueError | OSError | ImportError | ClusterError
        ):
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def _command_to_go_on(arguments: list[str]) -> str:
    """The command of an interrupted run, with --resume."""
    kept = [argument for argument in arguments if argument not in ("--resume", "--overwrite")]
    end = kept.index("--") if "--" in kept else len(kept)
    return shlex.join(["tilepath", *kept[:end], "--resume", *kept[end:]])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="tilepath")
def tilepath() -> None:
    """Shortest paths, Euler circuits and self-organizing maps over Zarr, on a laptop or on many GPUs."""


for command in (
    import_file,
    generate_graph,
    apsp,
    sssp,
    partition,
    od,
    euler,
    assemble,
    sequence,
    path,
    stats,
    picture,
    graph,
    export,
    info,
    verify,
    som,
    warm,
):
    tilepath.add_command(command)
