"""The recipes for container images: both install the same, and their shell commands can be read."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKER, APPTAINER = (ROOT / "scripts" / "containers" / name for name in ("Dockerfile", "apptainer.def"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEFT_OUT = {"cuda12", "docs", "osmnx", "test"}  # an image has one CUDA, builds no site, and runs no tests


def shell_of(recipe):
    """The commands of a recipe by the names of its sections."""
    text = re.sub(r"^#.*\n", "", recipe.read_text(), flags=re.M)
    if recipe == DOCKER:
        words = re.findall(r"^([A-Z]+) ((?:.*\\\n)*.*)$", text, re.M)
        assert {word for word, _ in words} == {"FROM", "ARG", "COPY", "RUN", "ENV", "WORKDIR", "ENTRYPOINT"}
        return dict(words)
    header, *sections = re.split(r"^%", text, flags=re.M)
    assert dict(line.split(": ") for line in header.split("\n") if line) == {
        "Bootstrap": "docker",
        "From": dict(re.findall(r"^(FROM) (.*)$", DOCKER.read_text(), re.M))["FROM"],
    }
    return dict(section.split("\n", 1) for section in sections)


@pytest.mark.parametrize("recipe", [DOCKER, APPTAINER], ids=lambda path: path.name)
def test_recipes_install_every_extra(recipe):
    (extras,) = re.findall(r"EXTRAS=(\S+)", recipe.read_text())
    assert sorted(extras.split(",")) == sorted(set(PROJECT["optional-dependencies"]) - LEFT_OUT)


@pytest.mark.parametrize("recipe", [DOCKER, APPTAINER], ids=lambda path: path.name)
def test_commands_can_be_read_by_a_shell(recipe):
    sections = shell_of(recipe)
    commands = [sections["RUN"]] if recipe == DOCKER else [sections[name] for name in ("post", "environment", "test")]
    for command in commands:
        done = subprocess.run(["sh", "-n"], input=command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    wheels = "/wheels/tilepath-*.whl", "/wheels/tilepath_kernels_cuda13-*.whl"
    assert all(wheel in commands[0] for wheel in wheels)
