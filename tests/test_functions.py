"""Functions are short, or say why not; what users call says what it takes."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import gpuops
import pipelines

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmarks", "clusters", "docs", "gpuops", "pipelines", "scripts", "tests", "tilepath")
MOST_LINES = 60  # beside the signature and the docstring
REASON = "One long function"


def lines_of(function):
    """How many lines a function has beside its signature and its docstring."""
    first = function.body[0]
    described = ast.get_docstring(function) is not None
    return function.end_lineno - (first.end_lineno if described else first.lineno - 1)


def functions_in(tree):
    """Every function of a module, nested ones too; expressions, most of a tree, are not looked at."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            yield from functions_in(node)


def may_have_a_long_function(text):
    """Whether many lines follow a function before the next one that is not inside of it. Saves parsing most files."""
    begun = [
        (number, len(found[1]))
        for number, line in enumerate(text.splitlines())
        if (found := re.match(r"( *)(async def|def|class) ", line))
    ]
    lines = text.count("\n")
    for i, (number, indent) in enumerate(begun):
        after = (later for later, other in begun[i + 1 :] if other <= indent)
        if next(after, lines) - number > MOST_LINES:
            return True
    return False


def test_long_functions_give_their_reason():
    long, silent = [], []
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    for path, text in ((path, path.read_text()) for path in paths):
        for node in functions_in(ast.parse(text)) if may_have_a_long_function(text) else ():
            if lines_of(node) > MOST_LINES:
                long.append(node.name)
                if REASON not in (ast.get_docstring(node) or ""):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}, {lines_of(node)} lines")
    assert "_search_block" in long  # they are found
    assert not silent


@pytest.mark.parametrize("face", [gpuops, pipelines], ids=lambda face: face.__name__)
def test_what_users_call_of_maps_says_what_it_takes(face):
    found = []
    for name in getattr(face, "__all__", dir(face)):
        value = inspect.unwrap(getattr(face, name))
        if inspect.isfunction(value) and ".som" in value.__module__:
            found.append(name)
            assert "Parameters\n" in inspect.getdoc(value), name
    assert len(found) > 5
