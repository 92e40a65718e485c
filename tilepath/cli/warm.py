"""The command `tilepath warm`, which compiles all GPU kernels in advance on all cores."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from tilepath.cli.help_pages import page


@page(example="tilepath warm")
def warm() -> None:
    """Compile all kernels for the GPUs of this machine in advance, so that no run waits for a compilation.

    Compiled kernels are kept in CuPy's cache, ~/.cupy/kernel_cache or the folder CUPY_CACHE_DIR. If several machines
    with the same GPUs share that folder, run this command on one of them. Kernels that are not
    compiled in advance are compiled at their first use.
    """
    from clusters.gpus import missing_packages, visible

    if not visible():
        raise click.ClickException("no NVIDIA driver with a GPU was found; there is nothing to compile for")
    if lack := missing_packages():
        raise click.ClickException(lack)
    from gpuops.warming import compile_kernels

    click.echo(f"Compiling all kernels on {os.cpu_count()} cores ...")
    begun = time.perf_counter()
    programs = compile_kernels()
    click.echo(f"{programs} programs in {time.perf_counter() - begun:.1f} s, kept in {cache_folder()}")


def cache_folder() -> Path:
    """Return the folder where CuPy keeps compiled kernels."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def is_cold() -> bool:
    """Return True if no kernel has been compiled here yet."""
    folder = cache_folder()
    return not (folder.is_dir() and any(folder.glob("*.cubin")))
