"""The notes of a release, from a changelog."""

import runpy
from pathlib import Path

import pytest

NOTES = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "release_notes.py"))["notes"]
CHANGELOG = """# Changelog

## [Unreleased]: what 1.1.0 will have

* new

## [1.0.1] - 2027-01-02

### Fixed

* old
"""


def test_notes_are_the_section_of_the_version():
    assert NOTES(CHANGELOG, "1.0.1", final=True) == "tilepath 1.0.1\n\n### Fixed\n\n* old"
    assert NOTES(CHANGELOG, "1.1.0") == "tilepath 1.1.0\n\n* new"


@pytest.mark.parametrize(("version", "final"), [("1.1.0", True), ("1.0", False), ("2.0.0", False)])
def test_a_version_without_a_dated_section_is_refused(version, final):
    with pytest.raises(ValueError, match=rf'no section "## \[{version}\] - YYYY-MM-DD"'):
        NOTES(CHANGELOG, version, final)
