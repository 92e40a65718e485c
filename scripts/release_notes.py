#!/usr/bin/env python
"""Print the notes of a release: the section of CHANGELOG.md for the version in pyproject.toml.

    python scripts/release_notes.py            the notes, also of changes that are not released yet
    python scripts/release_notes.py --final    the notes under a date, such as "## [0.1.0] - 2026-12-01"
    python scripts/release_notes.py --version  the version alone

A tag needs a date.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the notes, or the version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--final", action="store_true", help="refuse a section without a date")
    parser.add_argument("--version", action="store_true", help="print the version alone")
    arguments = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if arguments.version:
        print(version)
        return
    try:
        print(notes((ROOT / "CHANGELOG.md").read_text(), version, arguments.final))
    except ValueError as error:
        sys.exit(f"release_notes.py: {error}")


def notes(changelog: str, version: str, final: bool = False) -> str:
    """Return the notes of a version.

    Raises
    ------
    ValueError
        The changelog has no section for the version, or `final` is true and the section has no date.
    """
    sections = re.split(r"^## ", changelog, flags=re.M)[1:]
    dated = [s for s in sections if re.match(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n", s)]
    open_ = [s for s in sections if s.startswith("[Unreleased]") and version in s.partition("\n")[0].split()]
    if not dated and (final or not open_):
        raise ValueError(f'CHANGELOG.md has no section "## [{version}] - YYYY-MM-DD"; give this heading to its changes')
    _, _, body = (dated or open_)[0].partition("\n")
    return f"tilepath {version}\n\n{body.strip()}"


if __name__ == "__main__":
    main()
