"""Compiled functions are compiled again when code that they contain from other modules has changed."""

import ast
import importlib.util
import os
import re
import sys
from pathlib import Path

import numba
import pytest

from gpuops import compiled_code, recompiling

ROOT = Path(__file__).parents[2]
MODULE = """
from numba import njit
from gpuops.recompiling import recompiled_with_imports
from gpuops import (
    base,
)

TERM = base.TERM

@njit(cache=True)
@recompiled_with_imports
def outer(x):
    return _own(x)

@njit(cache=True)
@recompiled_with_imports
def _own(x):
    return x + TERM
"""


def test_a_constant_of_another_module_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(recompiling, "_ROOT", tmp_path)
    (tmp_path / "gpuops").mkdir()
    (tmp_path / "gpuops" / "base.py").write_text("from gpuops.deeper import TERM")
    (tmp_path / "gpuops" / "user.py").write_text(MODULE)

    def answered(term):
        """What `outer(1)` returns in a new process, and whether its compiled code came from the disk."""
        (tmp_path / "gpuops" / "deeper.py").write_text(f"TERM = {term}")
        recompiling._digest.cache_clear()
        recompiling._read.cache_clear()
        for name in "deeper", "base", "user":
            spec = importlib.util.spec_from_file_location(f"gpuops.{name}", tmp_path / "gpuops" / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, f"gpuops.{name}", module)
            monkeypatch.setattr(f"gpuops.{name}", module, raising=False)
            spec.loader.exec_module(module)
        return module.outer(1), bool(module.outer.stats.cache_hits)

    assert [answered(term) for term in (2, 2, 300, 2)] == [(3, False), (3, True), (301, False), (3, True)]


def test_modules_that_compile_code_of_other_modules_say_so():
    """`entry`, `inner` and `compiled` compile again; with `njit` the second decorator sees to it."""
    missing = []
    for path in (path for package in ("gpuops", "pipelines", "tilepath") for path in (ROOT / package).rglob("*.py")):
        if "njit(" not in (text := path.read_text()):
            continue
        nodes = ast.parse(text).body
        functions = [
            (node, decorators)
            for node in nodes
            if isinstance(node, ast.FunctionDef)
            and re.search(r"\b(njit|overload)\(", decorators := " ".join(map(ast.unparse, node.decorator_list)))
        ]
        imported = {
            alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("gpuops", "pipelines")
            for alias in node.names
        }
        lines = [line for node, _ in functions for line in node.body]
        used = {each.id for line in lines for each in ast.walk(line) if isinstance(each, ast.Name)}
        if used & imported:
            compiled = ((node, decorators) for node, decorators in functions if "njit(" in decorators)
            missing += [f"{path}: {node.name}" for node, found in compiled if "recompiled_with_imports" not in found]
    assert missing == []


def test_without_a_writable_folder_compiled_code_is_kept_for_one_run(tmp_path, monkeypatch):
    """Numba would refuse to compile where neither the installation nor the home is writable."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiled_code.use_writable_folder()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path / prefix))
    with pytest.warns(UserWarning, match="cannot be kept, .* set NUMBA_CACHE_DIR to a writable folder"):
        compiled_code.use_writable_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == numba.config.CACHE_DIR == str(tmp_path / "tilepath-")


def test_a_relative_folder_for_compiled_code_counts_and_a_home_that_is_a_file_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "new/cache")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "new/cache")
    monkeypatch.setattr(os, "access", lambda folder, _: str(folder) in (str(tmp_path), "/dev/null"))
    compiled_code.use_writable_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == "new/cache"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path / prefix))
    with pytest.warns(UserWarning, match="cannot be kept"):
        compiled_code.use_writable_folder()


def test_a_home_that_may_not_be_looked_into_does_not_fail_the_import(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "closed" / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    looked = os.stat

    def stat(path, **options):
        if str(path).startswith(str(tmp_path / "closed" / "cache")):
            raise PermissionError(13, "Permission denied", path)
        return looked(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "access", lambda folder, _: str(folder) == str(tmp_path))
    compiled_code.use_writable_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path)
