"""The commands `tilepath sequence`: look-and-say, spectra, permutations, de Bruijn sequences; to terminal or file.

A result is one array of numbers that is computed fast, so files are text or .npy, which NumPy maps into memory and any
program reads. The chunks, commits and digests of a Zarr store serve large results of long runs and are not needed here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tilepath.cli.assembly import de_bruijn
from tilepath.cli.cluster import DEVICE
from tilepath.cli.help_pages import Pages
from tilepath.cli.shared_options import OVERWRITE

SHOWN = 1000  # digits, numbers or rows printed to the terminal
# From this many bytes of a result on, "auto" takes a GPU, if there is one. By benchmarks/results/sequences-*.json, a
# result of 1 GiB takes 2.6 s (look-and-say), 0.16 s (spectrum) and 0.6 s (permutations) on two cores, and 0.23, 0.003
# and 0.003 s on an H200. Starting the GPU and copying the result may take half a second more, which has not been
# measured, so smaller results are made sooner on the CPU.
GPU_BYTES = 1 << 30
GPU_PERMUTATIONS = 2**63 - 1  # most permutations that a GPU counts
MOST_STEPS = 200  # steps of look-and-say whose term is longer than any memory, unless terms do not grow at all
_OUT = click.option(
    "--out", type=click.Path(path_type=Path), help="Write to this file (text or .npy) instead of the terminal."
)
_NUMBERS = {"ignore_unknown_options": True}  # -1 is a number, not an option


@click.group(cls=Pages)
def sequence() -> None:
    """Make sequences: look-and-say, spectra of cyclic peptides, permutations, de Bruijn sequences."""
    sys.set_int_max_str_digits(0)  # counts of permutations and lengths of terms have thousands of digits


@sequence.command("look-and-say", context_settings=_NUMBERS, example="tilepath sequence look-and-say 1 10")
@click.argument("seed")
@click.argument("steps", type=click.IntRange(min=0))
@click.option(
    "--lengths",
    "look_and_say_lengths",  # the name in messages of gpuops
    is_flag=True,
    help="Print the length of every term instead; no term is made, so STEPS may be large.",
)
@_OUT
@OVERWRITE
@DEVICE
def look_and_say_command(
    seed: str, steps: int, look_and_say_lengths: bool, out: Path | None, overwrite: bool, device: str
) -> None:
    """Print the term of the look-and-say sequence STEPS steps after SEED, a string of digits.

    A run of ten ones is written as 101.
    """
    import gpuops
    from gpuops.arrays import on_host

    if look_and_say_lengths:
        if device == "gpu":
            raise click.UsageError("--lengths makes no term, so a GPU has nothing to do; leave out --device")
        found = gpuops.look_and_say_lengths(seed, steps)
        if out is not None:
            _write_lines(out, map(str, found), overwrite)
        else:
            _echo_lines([f"{step}: {length:,}" for step, length in enumerate(found)], "lengths")
        return
    length = gpuops.look_and_say_lengths(seed, min(steps, MOST_STEPS))[-1]
    digits = _library(device, length, 2 * length).asarray(gpuops.look_and_say(seed, 0))
    term = gpuops.look_and_say(digits, steps)
    if out is not None and out.suffix == ".npy":
        _save(out, on_host(term), overwrite)
    elif out is not None:
        _write_lines(out, [_digits(on_host(term))], overwrite)
    else:
        more = f"... {len(term):,} digits; --out FILE writes all" if len(term) > SHOWN else ""
        click.echo(_digits(on_host(term[:SHOWN])) + more)


@sequence.command("spectrum", context_settings=_NUMBERS, example="tilepath sequence spectrum NQEL")
@click.argument("peptide", nargs=-1, required=True)
@click.option(
    "--counts",
    "cyclic_spectrum_counts",  # the name in messages of gpuops
    is_flag=True,
    help="Print each mass once with the number of times it occurs, for peptides of any length.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="Compare with the measured spectrum in this file (text or .npy), and print how many of its masses match.",
)
@_OUT
@OVERWRITE
@DEVICE
def spectrum_command(
    peptide: tuple[str, ...],
    cyclic_spectrum_counts: bool,
    against: Path | None,
    out: Path | None,
    overwrite: bool,
    device: str,
) -> None:
    """Print the masses of all pieces of the cyclic PEPTIDE, given as amino acids (NQEL) or whole masses.

    Separate masses by blanks or commas: 57 71 113, or 57,71,113.
    """
    import numpy as np

    import gpuops
    from gpuops.arrays import on_host
    from pipelines.stores.schema import counted

    if cyclic_spectrum_counts and against is not None:
        raise click.UsageError("--against compares the whole spectrum; leave out --counts")
    masses = _masses(peptide)
    needed = 8 * (int(masses.sum()) + 1 if cyclic_spectrum_counts else len(masses) * (len(masses) - 1) + 2)
    masses = _library(device, needed, 3 * needed).asarray(masses)
    if cyclic_spectrum_counts:
        table = on_host(gpuops.cyclic_spectrum_counts(masses))
        places = np.flatnonzero(table)
        result = np.column_stack((places, table[places]))
    else:
        result = on_host(gpuops.cyclic_spectrum(masses))
    if against is not None:
        measured = _numbers_in(against)
        click.echo(f"{gpuops.spectrum_score(result, measured):,} of {counted(len(measured), 'mass', 'masses')} match")
        if out is None:
            return
    _put(result, out, overwrite, "masses")


@sequence.command("permutations", context_settings=_NUMBERS, example="tilepath sequence permutations 4")
@click.argument("values", nargs=-1, required=True)
@click.option(
    "--first", type=click.IntRange(min=0), default=0, show_default=True, help="Rank of the first permutation."
)
@click.option("--count", type=click.IntRange(min=0), help="Number of permutations; by default all from --first on.")
@_OUT
@OVERWRITE
@DEVICE
def permutations_command(
    values: tuple[str, ...], first: int, count: int | None, out: Path | None, overwrite: bool, device: str
) -> None:
    """Print the permutations of VALUES in lexicographic order. VALUES are whole numbers, or one N for 0 to N - 1.

    Equal values are interchangeable. The number of permutations and their size in memory are printed first.
    """
    import numpy as np

    from gpuops import permutation_chunks, permutation_count, permutations
    from gpuops.arrays import on_host
    from gpuops.memory import refuse_beyond_memory, size
    from pipelines.stores.schema import counted

    numbers = [_whole(value) for value in values]
    arranged: Any = numbers[0] if len(numbers) == 1 else np.array(numbers)
    if len(numbers) == 1 and numbers[0] > 256:
        raise click.UsageError(f"N is {numbers[0]:,}; at most 256 different values can be arranged")
    total = permutation_count(arranged)
    rows = total - first if count is None else count
    if device == "gpu" and total > GPU_PERMUTATIONS:
        raise click.UsageError("a GPU counts to 2^63 - 1, and there are more permutations; use --device cpu")
    needed = rows * permutations(arranged, 0, 1).nbytes
    # Lines of text take longer to write than their permutations to find.
    whole = needed if out is not None and out.suffix == ".npy" and total <= GPU_PERMUTATIONS else 0
    xp = _library(device, whole, 2 * needed)
    if xp is not np:
        arranged = xp.asarray(np.arange(arranged, dtype=np.uint8) if len(numbers) == 1 else arranged)
    chunks = permutation_chunks(arranged, first, min(rows, SHOWN + 1) if out is None and rows > 0 else count)
    click.echo(f"{rows:,} of {counted(total, 'permutation')}, {size(needed)}", err=True)
    lines = (" ".join(map(str, row)) for chunk in chunks for row in on_host(chunk).tolist())
    if out is None:
        _echo_lines(list(lines), "permutations", rows)
    elif out.suffix == ".npy":
        refuse_beyond_memory(needed, f"{rows:,} permutations take", "take fewer by --count, or write a text file")
        _save(out, on_host(permutations(arranged, first, count)), overwrite)
    else:
        _write_lines(out, lines, overwrite)


sequence.add_command(de_bruijn)


def _library(device: str, size: int, needed: int) -> Any:
    """Return NumPy or CuPy for a result of `size` bytes that takes `needed` bytes of a GPU's memory."""
    from gpuops.devices import library_for_size

    return library_for_size(device, size, GPU_BYTES, needed)


def _digits(term: Any) -> str:
    return (term + 48).tobytes().decode()


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(f"{text!r} is not a whole number") from None


def _masses(peptide: tuple[str, ...]) -> Any:
    import numpy as np

    from gpuops import peptide_masses

    words = " ".join(peptide).replace(",", " ").split()
    if not words:
        raise click.UsageError("PEPTIDE is empty; give letters such as NQEL, or whole masses such as 57 71 113")
    if len(words) == 1 and words[0].isalpha():
        return peptide_masses(words[0])
    masses = [_whole(mass) for mass in words]
    if min(masses) < 0:
        raise click.UsageError(f"a mass is {min(masses)}; masses are not negative")
    return np.array(masses)


def _numbers_in(path: Path) -> Any:
    """Read whole numbers from a file: .npy, or text with blanks, commas or line ends between the numbers."""
    import numpy as np

    if path.suffix == ".npy":
        numbers = np.load(path)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(
                f"{path}: holds {numbers.dtype} of the shape {numbers.shape}; it must hold a 1-d array of integers"
            )
        return numbers.astype(numbers.dtype.newbyteorder("="), copy=False)
    found = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        for word in line.replace(",", " ").split():
            if not word.isdigit():
                raise ValueError(f"{path}, line {number}: {word!r} is not a whole mass")
            found.append(int(word))
    return np.array(found, np.int64)


def _put(numbers: Any, out: Path | None, overwrite: bool, what: str) -> None:
    if out is not None and out.suffix == ".npy":
        _save(out, numbers, overwrite)
        return
    shown = numbers if out is not None else numbers[: SHOWN + 1]
    lines = [" ".join(map(str, row)) if isinstance(row, list) else str(row) for row in shown.tolist()]
    if out is not None:
        _write_lines(out, lines, overwrite)
    else:
        _echo_lines(lines, what, len(numbers))


def _echo_lines(lines: list[str], what: str, size: int | None = None) -> None:
    for line in lines[:SHOWN]:
        click.echo(line)
    if len(lines) > SHOWN:
        click.echo(f"... {len(lines) if size is None else size:,} {what}; --out FILE writes all")


def _save(out: Path, numbers: Any, overwrite: bool) -> None:
    import numpy as np

    from pipelines.files.output_file import check_free, whole_file

    check_free(out, overwrite)
    with whole_file(out) as partial, partial.open("wb") as file:
        np.save(file, numbers)
    click.echo(f"{out}: {numbers.dtype} {' x '.join(f'{size:,}' for size in numbers.shape)}")


def _write_lines(out: Path, lines: Any, overwrite: bool) -> None:
    from pipelines.files.output_file import check_free, whole_file
    from pipelines.stores.schema import counted

    check_free(out, overwrite)
    count = 0
    with whole_file(out) as partial, partial.open("w") as file:
        for line in lines:
            file.write(f"{line}\n")
            count += 1
    click.echo(f"{out}: {counted(count, 'line')}")
