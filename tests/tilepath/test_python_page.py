"""The page docs/python.md: every public name is in it, and its examples run and give what they say."""

import ast
import re
from pathlib import Path

import matplotlib.pyplot as plt

import tilepath

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def values(code, names):
    """Run a block. Yields for each line with a comment `# = ...` the line, its value and the value in the comment."""
    for statement in ast.parse(code).body:
        _, _, said = code.splitlines()[statement.end_lineno - 1].partition("  # = ")
        text = ast.unparse(statement)
        if isinstance(statement, ast.Expr) and said:
            yield text, eval(text, names), said
        else:
            exec(text, names)


def test_every_public_name_is_on_the_page():
    """Functions in its blocks, classes of results and errors in its tables."""
    listed = set(re.findall(r"`tilepath\.(\w+)`", PAGE.read_text()))
    used = {
        node.attr
        for code in blocks()
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tilepath"
    }
    public = {*tilepath._MODULES}
    assert listed & used == set()
    assert listed | used == public, (listed | used) ^ public


def test_the_examples_of_the_page_run_and_say_what_happens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    checked = [(line, repr(value), said) for code in blocks() for line, value, said in values(code, names)]
    assert len(checked) > 30
    for line, value, said in checked:
        assert value == said, line
    plt.close("all")
