"""The command `tilepath warm`, and who says that it is there."""

import subprocess
import sys
from types import SimpleNamespace

from click.testing import CliRunner

from gpuops._cuda import GPUOPS
from tilepath.cli.warm import warm


def test_warm_says_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr("clusters.gpus.visible", list)
    result = CliRunner().invoke(warm)
    assert result.exit_code == 1
    assert "no NVIDIA driver with a GPU" in result.output


def test_all_programs_are_known_to_a_process_that_has_asked_for_none():
    script = "from gpuops.warming import all_programs; print(*{p.file for p in all_programs()})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {str(path.relative_to(GPUOPS)) for path in GPUOPS.rglob("*.cu")} == set(found)


def test_warm_compiles_what_is_declared(monkeypatch, host_shim, tmp_path):
    """One kind of GPU, which has two of."""
    compiled = []
    monkeypatch.setattr("clusters.gpus.visible", lambda: ["0", "1"])
    monkeypatch.setattr("clusters.gpus.missing_packages", lambda: None)
    monkeypatch.setattr("gpuops.warming.prepare", compiled.append)
    monkeypatch.setattr(host_shim.Device, "compute_capability", "90", raising=False)
    monkeypatch.setattr(host_shim.cuda, "runtime", SimpleNamespace(getDeviceCount=lambda: 2), raising=False)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    result = CliRunner().invoke(warm, catch_exceptions=False)
    assert result.exit_code == 0
    (programs,) = compiled
    assert f"{len(programs)} programs" in result.output
    assert {"sssp/search.cu", "minplus/product.cu", "som/decide.cu"} < {program.file for program in programs}


def test_a_cluster_of_gpus_says_that_it_compiles_first(monkeypatch, tmp_path, capsys):
    from tilepath.cli import cluster

    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("clusters.gpus.visible", lambda: ["0"])
    monkeypatch.setattr("clusters.start", lambda **options: None)
    options = dict.fromkeys(cluster.NAMES)
    for device, cold, says in ("auto", True, True), ("cpu", True, False), ("auto", False, False):
        if not cold:
            (tmp_path / "0.cubin").touch()
        cluster._open_client(options | {"device": device})
        assert ("tilepath warm" in capsys.readouterr().err) is says
