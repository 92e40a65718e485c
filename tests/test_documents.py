"""The documents name files that exist, and their figures of speed are those of benchmarks/results."""

import argparse
import functools
import json
import pkgutil
import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"]
DOCUMENTS += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
FOLDERS = r"(?:tilepath|pipelines|gpuops|clusters|benchmarks|scripts|tests|docs)"

UNITS = {"h": 3600, "s": 1, "ms": 1e-3, "us": 1e-6, "M/s": 1e6, "G/s": 1e9, "T/s": 1e12}
NUMBER = r"\d[\d,]*(?:\.\d+)?"
FIGURES = re.compile(rf"((?:{NUMBER} (?:/|-|to|and|;) )*{NUMBER}) (h|s|ms|us|[MGT](?: \w+)?/s)\b")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_and_modules_exist(name):
    text = (ROOT / name).read_text()
    paths = re.findall(rf"(?<![\w/.]){FOLDERS}/[\w./-]*\w/?", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_names_in_python_exist(name):
    found = re.findall(
        r"(?<![\w/.])(?:tilepath|pipelines|gpuops|clusters)(?:\.[A-Za-z_]\w*)+(?![\w*])", (ROOT / name).read_text()
    )
    for dotted in {*found} - {"tilepath.sklearn", "tilepath.sklearn.SelfOrganizingMap"}:  # which need scikit-learn
        pkgutil.resolve_name(dotted)


# --- The documents: items with their commands, tests, records and pictures --------------------------------------------


def test_items_of_the_documents_have_what_their_rows_name():
    page = ROOT / "docs" / "documents.md"
    _, _, *rows = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("|")]
    assert {row[0].strip() for row in rows} == {"", "1", "2", "3", "4"}
    wrong = []
    for _, item, command, test, record, picture in rows:
        commands, tests = re.findall("`(.+?)`", command), re.findall("`(.+?)`", test)
        records, pictures = (re.findall(r"\]\((.+?)\)", cell) for cell in (record, picture))
        complete = commands and tests and (records or not record.strip()) and (pictures or not picture.strip())
        folders = [path for path in records if not path.startswith("../benchmarks/results/")]
        folders += [path for path in pictures if not path.startswith("gallery/")]
        missing = [path for path in records + pictures if not (page.parent / path).exists()]
        missing += [name for name in tests if not is_test(name)] + [line for line in commands if not is_command(line)]
        if missing or folders or not complete:
            wrong.append((item.strip(), missing, folders))
    assert wrong == []


def is_test(name: str) -> bool:
    """Whether there is such a folder or file of tests, or, after "::", such a test in it."""
    path, _, function = name.partition("::")
    if not function:
        return name.startswith("tests/") and (ROOT / path).exists()
    return (ROOT / path).exists() and f"\ndef {function}(" in (ROOT / path).read_text()


def is_command(line: str) -> bool:
    """Whether the program, its subcommands and its options exist; arguments and values of options are not checked."""
    program, *words = shlex.split(line)
    options = [word for word in words if word.startswith("--")]
    if program == "tilepath":
        from tilepath.cli import tilepath

        command: Any = tilepath
        while isinstance(command, click.Group):
            command = command.commands.get(words.pop(0))
        known = {name for parameter in command.params for name in parameter.opts} if command else set()
        return command is not None and known.issuperset(options)
    if program == "scripts/bench.py":
        bench = runpy.run_path(str(ROOT / program))
        if words[0] == "chart":
            return words[1] in bench["CHARTS"]
        parser = argparse.ArgumentParser()
        bench["suite_of"](words[0]).add_arguments(parser)
        return all(option in parser.format_help() for option in options)
    if program == "sbatch":
        return (ROOT / words[0]).exists()
    if program == "python":
        path = words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0]
        return (ROOT / path).exists() and all(option in (ROOT / path).read_text() for option in options)
    return pkgutil.resolve_name(program) is not None  # or raises


def test_install_states_the_oldest_versions_that_pip_takes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needs = [each for name, listed in extras.items() if name != "test" for each in listed]
    needs += [*project["dependencies"], f"python{project['requires-python']}"]
    floors = dict(re.findall(r"^([a-z-]+?)(?:-cuda13x)?>=([\d.]+)", "\n".join(needs), re.MULTILINE))
    section = (ROOT / "docs/install.md").read_text().partition("## Versions and compatibility")[2]
    (table,) = re.findall(r"\n\| for .*?\n\n", section, re.DOTALL)
    stated = dict(re.findall(r"([\w-]+) (\d[\d.]*)", table.lower().replace("(below 4)", "")))
    assert len(stated) > 12
    assert {name: floors.get(name) for name in stated} == stated


# --- Figures ----------------------------------------------------------------------------------------------------------
#
# A figure may link its record: [16.8 s][fw], where [fw] has the file and, as the title, the case. Times and rates in a
# table are in the records that the text before the table links. A figure is right if it rounds what the record says.


def test_linked_figures_are_those_of_their_records():
    wrong = []
    for name in DOCUMENTS:
        for text, file, case in linked_figures(name):
            (record,) = (record for record in loaded(file)["records"] if record["case"] == case)
            rate = next(value for key, value in record.items() if key.endswith("_per_second"))
            for number, unit in figures(text):
                value = rate if unit.endswith("/s") else record["seconds"]["median"]
                if not rounds_to(number, unit, value):
                    wrong.append(f"{name}: {number} {unit} is {value:g} in {file.name}, {case}")
    assert wrong == []


def test_every_speed_in_the_readme_links_its_record():
    text = re.sub(r"```.*?```|\[[^\]]*\]\[\w+\]", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert list(figures(text)) == []
    assert len(list(linked_figures("README.md"))) > 5


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("docs/")])
def test_figures_in_tables_are_in_the_records_linked_before(name):
    wrong = []
    for table, files in tables(name):
        found = [each for file in files for each in quantities(loaded(file))]
        for number, unit in figures(table):
            rate = unit.endswith("/s")
            if not any(rounds_to(number, unit, value) for is_rate, value in found if is_rate == rate):
                wrong.append(f"{number} {unit} is not in {[file.name for file in files]}")
    assert wrong == []


def test_how_fast_says_which_program_is_faster_and_how_many_times():
    wrong, rows = [], 0
    for table, _ in tables("docs/how-fast.md"):
        header, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        for line in lines if "other program" in header else []:
            row = dict(zip(header, line, strict=True))
            cells = row["its time"], row["tilepath"]
            (low, high), (least, most) = (interval(*next(figures(cell))) for cell in cells)
            if not row["times faster"]:  # a core compared with a GPU
                assert row["other program"].startswith("(")
                continue
            fewest, largest = interval(row["times faster"], "s")
            faster = [cell.startswith("**") for cell in cells]
            if largest < low / most or fewest > high / least or faster != [high < least, most < low]:
                wrong.append(line)
            rows += 1
    assert wrong == []
    assert rows > 20


def interval(number: str, unit: str) -> tuple[float, float]:
    """Return the least and the largest value, in seconds, that rounds to a figure."""
    value, half = float(number.replace(",", "")), 0.5 * 10 ** -len(number.partition(".")[2])
    return (value - half) * UNITS[unit], (value + half) * UNITS[unit]


def figures(text: str) -> Iterator[tuple[str, str]]:
    """Number and unit of times and rates; in "1.5 / 1.9 ms" each number has the unit."""
    for numbers, unit in FIGURES.findall(text):
        for number in re.findall(NUMBER, numbers):
            yield number, re.sub(" .*/", "/", unit)


def rounds_to(number: str, unit: str, value: float) -> bool:
    places = len(number.partition(".")[2])
    return abs(float(number.replace(",", "")) - value / UNITS[unit]) <= 0.5000001 * 10**-places


def linked_figures(name: str) -> Iterator[tuple[str, Path, str]]:
    """Figure, file and case of each link to a record."""
    text = (ROOT / name).read_text()
    links = {link: rest for link, *rest in re.findall(r'^\[(\w+)\]: (\S+\.json) "(.+)"$', text, flags=re.MULTILINE)}
    for figure, link in re.findall(r"\[([^\]]+)\]\[(\w+)\]", text):
        if link in links:
            yield figure, (ROOT / name).parent / links[link][0], links[link][1]


def tables(name: str) -> Iterator[tuple[str, list[Path]]]:
    """Tables, and the records that the text since the heading or table before links."""
    text, files = (ROOT / name).read_text(), []
    links = dict(re.findall(r"^\[(\w+)\]: (\S+\.json)", text, flags=re.MULTILINE))
    for block in re.split(r"\n\s*\n", text):
        if block.startswith(("#", "<!--")):
            files = []  # tables in comments are filled: tests/benchmarks/test_document_tables.py
        elif "\n|" in f"\n{block}":
            yield block, [(ROOT / name).parent / file for file in files]
            files = []
        files += re.findall(r"\]\((\S*results/\S+\.json)\)", block)
        files += [links[link] for link in re.findall(r"\]\[(\w+)\]", block) if link in links]


@functools.cache
def loaded(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def quantities(record: Any, milliseconds: bool = False) -> Iterator[tuple[bool, float]]:
    """Seconds and rates in a record: whether it is a rate, and the number."""
    if isinstance(record, dict):
        for key, value in record.items():
            if key.endswith("_per_second"):
                yield True, value
            elif key not in ("sizes", "versions", "min", "max", "repeats", "speedup_over_heap"):
                yield from quantities(value, "milliseconds" in key + str(record.get("case")))
    elif isinstance(record, list):
        for value in record:
            yield from quantities(value, milliseconds)
    elif isinstance(record, (int, float)):
        yield False, record / 1000 if milliseconds else record
