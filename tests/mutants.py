"""Kernels broken on purpose: one line of a file differs, and tests have to notice."""

import re

from gpuops._cuda import GPUOPS, Program


def lines_with(file, pattern, replacement):
    """A mutant, as `break_line` takes it, for every line of the file in which the pattern is found."""
    return [
        (file, number, pattern, replacement)
        for number, line in enumerate((GPUOPS / file).read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]


def break_line(monkeypatch, file, number, pattern, replacement):
    """Let gpuops launch kernels of which that line is different."""
    lines = (GPUOPS / file).read_text().splitlines()
    broken = list(lines)
    broken[number - 1] = re.sub(pattern, replacement, lines[number - 1])
    assert broken != lines
    source = Program.source
    # `source` has the file as it is, but for its include lines, which become other text before this line.
    first = 1 + max((i for i, line in enumerate(lines) if line.startswith(("#include", "#pragma once"))), default=-1)
    whole, edited = "\n".join(lines[first:]), "\n".join(broken[first:])
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(whole, edited))
