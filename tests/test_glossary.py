"""The words that docs/glossary.md says are not used are in no name that users meet."""

import re
from pathlib import Path

import click

import gpuops
import tilepath
from tilepath.cli.command import tilepath as command

GLOSSARY = Path(__file__).parents[1] / "docs/glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| ([^|]*?) ?\|$", re.MULTILINE)


def rows():
    return [
        (term, [word.strip() for word in words.split(",") if word.strip()])
        for term, words in ROW.findall(GLOSSARY.read_text())
    ]


def names(group, prefix=""):
    """Commands and options."""
    for name, found in group.commands.items():
        yield name
        for parameter in found.params:
            yield from parameter.opts
        if isinstance(found, click.Group):
            yield from names(found)


def test_no_public_name_has_a_word_that_the_glossary_replaces():
    replaced = {word: term for term, words in rows() if term != "term" for word in words if " " not in word}
    assert len(replaced) > 20
    public = [*tilepath.__all__, *gpuops.__all__, *names(command)]
    words = {word: name for name in public for word in re.split(r"[-_]+|(?<=[a-z])(?=[A-Z])", name.strip("-"))}
    words = {word.lower(): name for word, name in words.items()}
    assert {words[word]: replaced[word] for word in replaced.keys() & words.keys()} == {}


def test_a_term_stands_once():
    terms = [term for term, _ in rows() if term != "term" and not term.startswith("-")]
    assert len(terms) == len(set(terms)) > 40
