"""The glossary of the site: the tables of glossary.md as terms that the search lists and pages link to.

On the forge, glossary.md is tables, and a link to a term, such as [tight](glossary.md#term-tight-arc), opens the page.
On the site, each row is a definition. Words that readers bring from elsewhere, and words that a row explains on the
way (*diameter*), are terms too: each one says which row to see.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain

ROW = re.compile(r"^\| (?!term )(\w[^|]*?) \| ([^|]+?) \| ([^|]*?) *\|$", re.MULTILINE)
TABLE = re.compile(r"^\| term \|.*\n(?:\|.*\n?)+", re.MULTILINE)
PAGE = Path(__file__).parents[1] / "glossary.md"


def terms(cell: str) -> list[str]:
    return cell.replace("\\", "").split(", ")


def entry(names: list[str], meaning: str) -> str:
    return "\n".join(name.replace("*", "\\*") for name in names) + f"\n  {meaning}\n"


def definitions(table: re.Match[str]) -> str:
    """Turn a table into definitions."""
    entries = [
        entry(terms(names), meaning + (f". *Elsewhere: {words}.*" if words else "."))
        for names, meaning, words in ROW.findall(table[0])
    ]
    return ":::{glossary}\n" + "\n".join(entries) + ":::\n"


def words_of_readers(text: str) -> str:
    """List the words that are explained in the row of another term."""
    rows = [(terms(names), meaning, words) for names, meaning, words in ROW.findall(text)]
    known = {name for names, _, _ in rows for name in names}
    see: dict[str, list[str]] = {}
    for names, meaning, words in rows:
        for word in [*words.split(", "), *re.findall(r"(?<!\*)\*([\w -]+)\*", meaning)]:
            if word.isprintable() and word not in {"", "...", *known}:
                see.setdefault(word, []).append(names[0])
    found = [entry([word], "See " + ", ".join(f"{{term}}`{name}`" for name in see[word]) + ".") for word in sorted(see)]
    return "\n## Other words\n\n:::{glossary}\n" + "\n".join(found) + ":::\n"


def define(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == "glossary":
        source[0] = TABLE.sub(definitions, source[0]) + words_of_readers(source[0])
    elif "glossary.md#term-" in source[0]:
        rows = ROW.findall(PAGE.read_text())
        addresses = {re.sub(r"\W+", "-", name.lower()): name for names, *_ in rows for name in terms(names)}
        source[0] = re.sub(
            r"\[([^]]+)\]\([./]*glossary\.md#term-([\w-]+)\)",
            lambda link: f"{{term}}`{link[1]} <{addresses[link[2]]}>`",
            source[0],
        )


def setup(app: Sphinx) -> None:
    StandardDomain.object_types["term"].attrs["searchprio"] = 0  # Sphinx leaves terms out of the search
    app.connect("source-read", define, priority=600)  # after conf.py, which reads pages of other folders
