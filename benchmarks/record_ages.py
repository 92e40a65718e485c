"""List the commit of each record, and the changes since in the code that it measures: `scripts/bench.py records`.

A file counts as changed if its code differs, comments, docstrings and layout apart. A file that was only moved has not
changed.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.harness import ROOT

SHARED = ("gpuops/device", "gpuops/_cuda.py")  # part of every kernel on a GPU
MEASURED = {
    "apsp": ("gpuops/minplus", "gpuops/sssp", "gpuops/hierarchy"),
    "commits": ("pipelines/stores", "pipelines/workers/saving.py"),
    "cores": ("gpuops/sssp", "gpuops/minplus"),
    "csgraph": ("gpuops/sssp", "gpuops/minplus", "gpuops/label_setting"),
    "distinct": ("gpuops/compaction",),
    "euler": ("gpuops/euler",),
    "fw-table": ("gpuops/minplus", "benchmarks/kernels"),
    "graphs": ("gpuops/graphs", "gpuops/csr"),
    "hierarchy": ("gpuops/hierarchy", "gpuops/minplus"),
    "hierarchy-commands": ("gpuops/hierarchy",),
    "hops": ("gpuops/hops", "gpuops/centrality"),
    "hops-gpu": ("gpuops/hops", "gpuops/centrality", "gpuops/csr"),
    "imports": ("pipelines/formats",),
    "large-tables": ("gpuops/hierarchy",),
    "limits": ("benchmarks/kernels/limits.cu",),
    "minisom": ("gpuops/som",),
    "networkx": ("gpuops/sssp", "gpuops/minplus", "gpuops/hops", "gpuops/centrality", "tilepath/networkx"),
    "od-tables": ("gpuops/hierarchy",),
    "out-of-core": ("gpuops/minplus",),
    "plans": ("gpuops", "pipelines"),
    "preparation": ("gpuops/hierarchy", "pipelines/formats"),
    "reduction": ("gpuops/reduction", "gpuops/label_setting"),
    "scaling": ("gpuops/minplus",),
    "sequences": ("gpuops/sequences", "benchmarks/kernels/sequences.cu"),
    "som": ("gpuops/som", "benchmarks/kernels"),
    "som-commands": ("gpuops/som", "pipelines/som", "pipelines/formats"),
    "som-training": ("gpuops/som",),
    "sources": ("gpuops/sssp",),
    "sssp": ("gpuops/sssp", "gpuops/label_setting"),
    "sssp-table": ("gpuops/sssp", "gpuops/label_setting", "benchmarks/kernels/edge_sweep.cu"),
}  # the code that each suite measures; a file that is of no suite counts as one of all of gpuops


def describe(results: Iterable[Path], files: bool = False) -> Iterator[str]:
    """Yield a line for each file of results, and with `files` a line for each file of code that has changed since."""
    for path in sorted(results):
        found = json.loads(path.read_text())
        suites = [suite for suite in MEASURED if path.name.startswith(f"{suite}-")]
        measured = MEASURED[max(suites, key=len)] if suites else ("gpuops",)
        if any("sm_clock_mhz" in record for record in found.get("records", [])):
            measured += SHARED
        commit = found["commit"].removesuffix("-dirty")
        try:
            changed = changed_files(commit, measured)
            told = f"{len(changed)} changed file{'s' * (len(changed) != 1)}" if changed else "no change"
        except subprocess.CalledProcessError:
            changed, told = [], "not in the history, so changes are unknown"
        yield f"{path.name}: {found['commit']} of {found['date']}, {found['device']}; {told} in {', '.join(measured)}"
        if files:
            yield from (f"    {file}" for file in changed)


@functools.cache
def changed_files(commit: str, paths: tuple[str, ...]) -> list[str]:
    """Return the files below `paths` whose code differs from that of `commit`, by their names today, or then."""
    changed = []
    for line in _git("diff", "--name-status", "-M", commit, "--", *paths).splitlines():
        status, *names = line.split("\t")
        before = "" if status == "A" else _git("show", f"{commit}:{names[0]}")
        after = "" if status == "D" else (ROOT / names[-1]).read_text()
        if code_of(before, names[0]) != code_of(after, names[-1]):
            changed.append(names[-1])
    return changed


@functools.cache
def code_of(text: str, name: str) -> str:
    """Return the code of a file without comments, docstrings and layout."""
    if name.endswith(".py"):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
                del node.body[0]
        return ast.dump(tree)
    without = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    return " ".join(without.split())


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
