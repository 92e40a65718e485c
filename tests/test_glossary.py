"""The words that docs/glossary.md says are not used are in no name that users meet."""

import inspect
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click

import gpuops
import pipelines.stores
import tilepath
from pipelines.stores.declared import Schema
from tilepath.cli.command import tilepath as command

GLOSSARY = Path(__file__).parents[1] / "docs/glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| ([^|]*?) ?\|$", re.MULTILINE)
# Names with a word that is replaced in another meaning; the glossary has this meaning, too.
OTHER_MEANINGS = {
    "cost": "of a hierarchy, in relaxations",
    "node_of": "node of a hierarchy",
    "nodes": "of a hierarchy",
    "parent": "of a node of a hierarchy",
    "parents": "of vertices in a spanning forest",
    "radius": "of a graph: its least eccentricity",
}


def rows():
    return [
        (term, [word.strip() for word in words.split(",") if word.strip()])
        for term, words in ROW.findall(GLOSSARY.read_text())
    ]


def of_commands(group):
    """Commands and options."""
    for name, found in group.commands.items():
        yield name
        for parameter in found.params:
            yield from parameter.opts
        if isinstance(found, click.Group):
            yield from of_commands(found)


def of_python(package):
    """Functions and classes, their parameters, and the attributes and methods of classes."""
    for name in package.__all__:
        found = getattr(package, name)
        yield name
        public = [each for each in dir(found) if not each.startswith("_")] if inspect.isclass(found) else []
        yield from public
        for call in [found, *(getattr(found, each) for each in public)]:
            if callable(call):
                with suppress(ValueError):  # of a type of Python itself
                    yield from inspect.signature(call).parameters


def of_stores():
    """Arrays of stores, their dimensions, and attributes."""
    for module in iter_modules(pipelines.stores.__path__, "pipelines.stores."):
        for schema in vars(import_module(module.name)).values():
            if isinstance(schema, Schema):
                yield from (attribute.name for attribute in schema.attributes)
                for array in schema.arrays:
                    yield from (array.name, *(length.removesuffix(" + 1") for length in array.lengths))


def test_no_name_has_a_word_that_the_glossary_replaces():
    replaced = {word for term, words in rows() if term != "term" for word in words if " " not in word}
    assert len(replaced) > 20
    names = {*of_commands(command), *of_python(tilepath), *of_python(gpuops), *of_stores()}
    assert {"--rows", "search_graph", "through", "commit_seconds", "indptr"} <= names
    wrong = set()
    for name in names:
        words = [word.lower() for word in re.split(r"[-_ ]+|(?<=[a-z])(?=[A-Z])", name)]
        if replaced & {*words, *(word.removesuffix("s") for word in words)}:
            wrong.add(name)
    assert wrong == OTHER_MEANINGS.keys()


def test_a_term_stands_once():
    terms = [term for term, _ in rows() if term != "term" and not term.startswith("-")]
    assert len(terms) == len(set(terms)) > 40
