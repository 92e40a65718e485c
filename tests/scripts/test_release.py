"""`scripts/release` in a small repository whose programs of Python only record how they are called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "release"
RECORDER = """#!/bin/sh
echo "$*" >>calls
case "$*" in
*"hatchling build"*) mkdir dist ;;
*--version) echo 1.2.0 ;;
*release_notes*) echo "What 1.2.0 has" ;;
*release_trial*) git commit --quiet --allow-empty --message "made meanwhile" ;;
esac
"""
USER = {f"GIT_{role}_{part}": "a@b" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / ".gitignore").write_text("calls\ndist\n")
    for name in ".venv-release", ".venv-kernels-13", ".venv-kernels-12":
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(RECORDER)
        python.chmod(0o755)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def git(folder, *words):
    environment = os.environ | USER
    done = subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def release(folder, *options, **variables):
    environment = os.environ | USER | {"ARCHITECTURES": ""} | variables
    return subprocess.run([folder / "scripts/release", *options], env=environment, capture_output=True, text=True)


def test_the_tag_is_of_the_commit_that_was_built(project):
    built = git(project, "rev-parse", "HEAD")
    assert release(project, "--tag").returncode == 0
    assert git(project, "rev-parse", "v1.2.0^{commit}") == built != git(project, "rev-parse", "HEAD")
    assert git(project, "tag", "--list", "--format=%(contents)") == "What 1.2.0 has"
    again = release(project, "--tag")
    assert (again.returncode, again.stderr) == (1, "the tag v1.2.0 exists; change the version\n")


def test_a_tag_needs_a_clean_checkout(project):
    (project / "new").touch()
    done = release(project, "--tag")
    assert (done.returncode, done.stderr) == (1, "commit your changes before a tag\n")


@pytest.mark.parametrize(
    ("variables", "options"),
    [({}, ""), ({"ARCHITECTURES": "sm_80 sm_90"}, " --architecture sm_80 sm_90")],
)
def test_kernels_are_compiled_for_all_architectures_or_some(project, variables, options):
    assert release(project, **variables).returncode == 0
    calls = (project / "calls").read_text().splitlines()
    assert [call for call in calls if "kernels_wheel" in call] == [f"scripts/kernels_wheel.py dist{options}"] * 2
    assert not git(project, "tag")
