"""The scripts of the gallery run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path.name for path in (ROOT / "docs/gallery").glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_runs(name, tmp_path):
    script = ROOT / "docs/gallery" / name
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
