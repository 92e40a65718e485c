"""The command `tilepath`: its subcommands, and its messages on errors and Ctrl-C."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shlex
import signal
import sys
import threading
import warnings

import click

from pipelines.workers.interruption import Interrupted, handling
from tilepath.cli.answers import path, stats
from tilepath.cli.assembly import assemble
from tilepath.cli.centrality import betweenness, flows
from tilepath.cli.euler import euler
from tilepath.cli.graph_operations import graph
from tilepath.cli.graphs import generate_graph, import_file
from tilepath.cli.help_pages import Pages
from tilepath.cli.hierarchy import hierarchy
from tilepath.cli.histogram import histogram
from tilepath.cli.isochrones import isochrones
from tilepath.cli.messages import in_options_of
from tilepath.cli.od import od
from tilepath.cli.paths import apsp, sssp
from tilepath.cli.picture import picture
from tilepath.cli.sequence import sequence
from tilepath.cli.som import som
from tilepath.cli.stores import export, info, verify
from tilepath.cli.warm import warm
from tilepath.cli.what_if import what_if


def main() -> None:
    """Run the command; print a warning, or an error that the user can mend, as one line without a traceback."""
    warnings.showwarning = lambda message, *_about, **_options: click.echo(f"Warning: {_say(message)}", err=True)
    try:
        with handling():
            tilepath(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        _end_quietly()
        message = "Interrupted."
        if isinstance(error.__cause__ or error, Interrupted):
            message += f" Committed results are kept; resume with: {_command_to_go_on(sys.argv[1:])}"
        click.echo(message, err=True)
        sys.exit(130)
    except Exception as error:
        from clusters import ClusterError
        from clusters.errors import lost_connection
        from gpuops.errors import NoGpuError
        from pipelines.stores.errors import explained

        known = ValueError | OSError | ImportError | MemoryError | ClusterError | NoGpuError
        if os.environ.get("TILEPATH_TRACEBACK") or not isinstance(error, known):
            raise
        click.echo(f"Error: {_say(explained(error) or lost_connection(error) or error)}", err=True)
        sys.exit(1)


def _say(message: object) -> str:
    """Return `message` with the command's options in place of Python arguments."""
    command: click.Command = tilepath
    for word in sys.argv[1:]:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        command = command.commands[word]
    return in_options_of(command, str(message))


def _end_quietly() -> None:
    """Print no more messages, and let Ctrl-C kill this process, which is about to end.

    Uncommitted writes are broken off when the process ends; asyncio and Dask would report each one. Python waits for
    threads and processes before it ends, so a second Ctrl-C must not be caught.
    """
    logging.disable(logging.CRITICAL)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "distributed" in sys.modules:
        atexit.register(_kill_starting_workers)


def _kill_starting_workers() -> None:
    """Kill worker processes that are still starting: each would print a traceback when this process is gone."""
    import psutil

    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # the child has ended in the meantime
            if "--multiprocessing-fork" in child.cmdline():
                child.kill()


def _command_to_go_on(arguments: list[str]) -> str:
    """Return the command line of the interrupted run with --resume added."""
    kept = [argument for argument in arguments if argument not in ("--resume", "--overwrite")]
    end = kept.index("--") if "--" in kept else len(kept)
    return shlex.join(["tilepath", *kept[:end], "--resume", *kept[end:]])


SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Graphs": (import_file, generate_graph, graph, picture),
    "Shortest paths": (apsp, sssp, path, stats, betweenness, flows),
    "Road networks": (hierarchy, od, histogram, isochrones, what_if),
    "Euler circuits and sequences": (euler, assemble, sequence),
    "Self-organizing maps": (som,),
    "Stores": (info, verify, export),
    "GPUs": (warm,),
}


@click.group(
    cls=Pages,
    sections=SECTIONS,
    replaced={"partition": "tilepath hierarchy GRAPH OUT"},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="tilepath")
def tilepath() -> None:
    """Shortest paths, Euler circuits and self-organizing maps over Zarr, on a laptop or on many GPUs."""
    from gpuops.lazy_imports import refuse_other_systems

    refuse_other_systems()
