"""The command `tilepath warm`, which compiles all GPU kernels in advance on all cores."""

from __future__ import annotations

import os
import time

import click

from tilepath.cli.help_pages import page


@page(example="tilepath warm")
def warm() -> None:
    """Compile all kernels for the GPUs of this machine in advance, so that no run waits for a compilation.

    Kernels that the package tilepath-kernels-cuda13 (or cuda12) ships are not compiled. Compiled kernels are kept in
    CuPy's cache, ~/.cupy/kernel_cache or the folder CUPY_CACHE_DIR. If several machines with the same GPUs share that
    folder, run this command on one of them. Kernels that are not compiled in advance are compiled at their first use.
    """
    from clusters.gpus import missing_packages, visible

    if not visible():
        raise click.ClickException("no NVIDIA driver with a GPU was found; there is nothing to compile for")
    if lack := missing_packages():
        raise click.ClickException(lack)
    from gpuops.warming import cache_folder, compile_kernels

    click.echo(f"Compiling what is missing on {os.cpu_count()} cores ...")
    begun = time.perf_counter()
    count = compile_kernels()
    click.echo(
        f"{sum(count.values())} programs in {time.perf_counter() - begun:.1f} s: {count['shipped']} were shipped,"
        f" {count['kept']} compiled earlier, {count['compiled']} compiled now, kept in {cache_folder()}"
    )
