"""Run the commands and the code of a page, and compare their output with the output that the page shows.

A block `sh` or `python` is run in the current folder. A block `text` has the output of the block before; "..." stands
for any text, as in doctests, and /home/you for the current folder. In a block `text numbers differ`, any number stands
for any number. A block `text refused` has an error that the page quotes; it is not compared.
"""

import contextlib
import doctest
import io
import re
import runpy
import shlex
import subprocess
from pathlib import Path
from unittest import mock

import dask
from commands import run_command

CHECKER = doctest.OutputChecker()
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


NUMBER = r"\d[\d,.]*( [kMG])?"


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each block of commands, code and output."""
    found = re.findall(r"^```(sh|python|text)( numbers differ)?\n(.*?)^```", page.read_text(), re.S | re.M)
    return [(language, re.sub(NUMBER, "...", text) if differ else text) for language, differ, text in found]


def run(page: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    dask.config.set(scheduler=None)  # a client of an earlier test may have left its own
    printed = ""
    for language, text in blocks(page):
        if language == "text":
            example = doctest.Example("", text)
            assert CHECKER.check_output(text, printed, OPTIONS), CHECKER.output_difference(example, printed, OPTIONS)
            continue
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, page.name, "exec"), names)
            printed = output.getvalue()
        else:
            printed = "".join(run_line(line) for line in text.replace("\\\n", "").splitlines())
        printed = printed.replace(str(Path.cwd()), "/home/you")


def run_line(line: str) -> str:
    """Run a line of a shell. Commands of tilepath and scripts of Python run in this process. Returns the output."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["tilepath"]:
        return run_command(*words[1:]).output
    if words[:1] == ["python"] and words[1].endswith(".py"):
        with contextlib.redirect_stdout(io.StringIO()) as output, mock.patch("sys.argv", words[1:]):
            runpy.run_path(words[1], run_name="__main__")
        return output.getvalue()
    return subprocess.run(line, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout
