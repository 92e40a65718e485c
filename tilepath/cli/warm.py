"""The command `tilepath warm`: GPU kernels compiled ahead, all at once on all cores."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click


@click.command()
def warm() -> None:
    """Compile the GPU kernels of this machine ahead, so that no run waits for them.

    They are kept in CuPy's cache, ~/.cupy/kernel_cache or the folder CUPY_CACHE_DIR. Where machines of one kind share
    that folder, one of them is enough. Without this, every kernel is compiled when it is first used.
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
    """Where CuPy keeps what it has compiled."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def is_cold() -> bool:
    """Has nothing been compiled here yet?"""
    folder = cache_folder()
    return not (folder.is_dir() and any(folder.glob("*.cubin")))
