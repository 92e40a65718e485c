"""The commands `tilepath sequence`: look-and-say, spectra, permutations, every word once; to the terminal or a file.

Results are one array of numbers, made in a moment and read by anything: files are text, or .npy, which NumPy maps into
memory. A Zarr store would add what large results of long runs need, chunks, commits and a digest, to what has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilepath.cli.assembly import de_bruijn

SHOWN = 1000  # digits or numbers that are printed, or rows
_OUT = click.option(
    "--out", type=click.Path(path_type=Path), help="Write to this file, text or .npy, not to the terminal."
)
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace a file that exists.")


@click.group()
def sequence() -> None:
    """Sequences: look-and-say, spectra of cyclic peptides, permutations, every word once."""


@sequence.command("look-and-say")
@click.argument("seed")
@click.argument("steps", type=click.IntRange(min=0))
@click.option("--lengths", is_flag=True, help="Print the length of every term; no term is made, so any STEPS will do.")
@_OUT
@_OVERWRITE
def look_and_say_command(seed: str, steps: int, lengths: bool, out: Path | None, overwrite: bool) -> None:
    """The term of the look-and-say sequence that is STEPS after SEED, a row of digits.

    A run of ten ones is said as 101.
    """
    from gpuops import look_and_say, look_and_say_lengths

    found = look_and_say_lengths(seed, steps)
    if lengths:
        if out is not None:
            _write_lines(out, map(str, found), overwrite)
        else:
            _echo_lines([f"{step}: {length:,}" for step, length in enumerate(found)], "lengths")
        return
    _check_room(found[-1], f"The term after {steps} steps", "take --lengths")
    term = look_and_say(seed, steps)
    if out is not None and out.suffix == ".npy":
        _save(out, term, overwrite)
    elif out is not None:
        _write_lines(out, [_digits(term)], overwrite)
    else:
        more = f"... {len(term):,} digits; --out FILE writes all" if len(term) > SHOWN else ""
        click.echo(_digits(term[:SHOWN]) + more)


@sequence.command("spectrum")
@click.argument("peptide", nargs=-1, required=True)
@click.option("--counts", is_flag=True, help="Each mass once, and how often it occurs: for rings of any length.")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="A measured spectrum, text or .npy; prints what matches.",
)
@_OUT
@_OVERWRITE
def spectrum_command(
    peptide: tuple[str, ...], counts: bool, against: Path | None, out: Path | None, overwrite: bool
) -> None:
    """The masses of all pieces of the cyclic PEPTIDE, letters of amino acids (NQEL) or whole masses (57 71 113)."""
    import numpy as np

    from gpuops import cyclic_spectrum, cyclic_spectrum_counts, spectrum_score

    if counts and against is not None:
        raise click.UsageError("--against compares the whole spectrum; leave out --counts")
    masses = _masses(peptide)
    if counts:
        table = cyclic_spectrum_counts(masses)
        places = np.flatnonzero(table)
        result = np.column_stack((places, table[places]))
    else:
        size = 8 * (len(masses) * (len(masses) - 1) + 2)
        _check_room(size, f"The spectrum of {len(masses):,} masses", "take --counts")
        result = cyclic_spectrum(masses)
    if against is not None:
        measured = _numbers_in(against)
        click.echo(f"{spectrum_score(result, measured):,} of {len(measured):,} masses match")
        if out is None:
            return
    _put(result, out, overwrite, "masses")


@sequence.command("permutations")
@click.argument("values", nargs=-1, required=True)
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="Rank of the first one.")
@click.option("--count", type=click.IntRange(min=0), help="How many; default all from there on.")
@_OUT
@_OVERWRITE
def permutations_command(
    values: tuple[str, ...], first: int, count: int | None, out: Path | None, overwrite: bool
) -> None:
    """Permutations of VALUES in lexicographic order: whole numbers, or one N for 0 to N - 1.

    Equal values do not count as different. Says first how many there are, and what they take.
    """
    import numpy as np

    from gpuops import permutation_chunks, permutation_count, permutations

    numbers = [_whole(value) for value in values]
    arranged: Any = numbers[0] if len(numbers) == 1 else np.array(numbers)
    if len(numbers) == 1 and numbers[0] > 256:
        raise click.UsageError(f"N is {numbers[0]:,}; at most 256 different values can be arranged")
    total = permutation_count(arranged)
    rows = total - first if count is None else count
    chunks = permutation_chunks(arranged, first, min(rows, SHOWN + 1) if out is None and rows > 0 else count)
    size = max(permutations(arranged, 0, 1).nbytes, 1)
    click.echo(f"{rows:,} of {total:,} permutations, {rows * size / 10**6:.3g} MB", err=True)
    lines = (" ".join(map(str, row)) for chunk in chunks for row in chunk.tolist())
    if out is None:
        _echo_lines(list(lines), "permutations", rows)
    elif out.suffix == ".npy":
        _save(out, permutations(arranged, first, count), overwrite)
    else:
        _write_lines(out, lines, overwrite)


sequence.add_command(de_bruijn)


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

    if len(peptide) == 1 and peptide[0].isalpha():
        return peptide_masses(peptide[0])
    masses = [_whole(mass) for mass in peptide]
    if min(masses) < 0:
        raise click.UsageError(f"a mass is {min(masses)}; masses are not negative")
    return np.array(masses)


def _numbers_in(path: Path) -> Any:
    """Whole numbers of a file: .npy, or text with blanks, commas or lines between them."""
    import numpy as np

    if path.suffix == ".npy":
        numbers = np.load(path)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(
                f"{path}: holds {numbers.dtype} of the shape {numbers.shape}; it must be integers in a row"
            )
        return numbers
    found = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        for word in line.replace(",", " ").split():
            if not word.isdigit():
                raise ValueError(f"{path}, line {number}: {word!r} is not a whole mass")
            found.append(int(word))
    return np.array(found, np.int64)


def _check_room(size: int, what: str, cure: str) -> None:
    from pipelines.workers.memory import available_memory

    room = available_memory()
    if size > room:
        raise ValueError(f"{what} takes {size / 10**9:.3g} GB, and {room / 1e9:.3g} are free; {cure}")


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

    from pipelines.formats.output_file import check_free, whole_file

    check_free(out, overwrite)
    with whole_file(out) as partial, partial.open("wb") as file:
        np.save(file, numbers)
    click.echo(f"{out}: {numbers.dtype} {' x '.join(f'{size:,}' for size in numbers.shape)}")


def _write_lines(out: Path, lines: Any, overwrite: bool) -> None:
    from pipelines.formats.output_file import check_free, whole_file

    check_free(out, overwrite)
    count = 0
    with whole_file(out) as partial, partial.open("w") as file:
        for line in lines:
            file.write(f"{line}\n")
            count += 1
    click.echo(f"{out}: {count:,} lines")
