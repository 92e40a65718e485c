"""The commands `tilepath sequence` as a user calls them."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tilepath.cli import main
from tilepath.cli.sequence import SHOWN

SPECTRUM = "0 57 71 113 113 128 128 184 185 226 241 241 256 297 298 354 354 369 369 411 425 482".split()


@pytest.fixture
def sequence(tmp_path, monkeypatch, capsys):
    """Run the command in this process; what it prints, or the error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["tilepath", "sequence", *map(str, arguments)])
        capsys.readouterr()
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code
        out, err = capsys.readouterr()
        assert status == code, err
        return out if code == 0 else err

    return call


def test_look_and_say(sequence, tmp_path):
    assert sequence("look-and-say", 1113122113, 1) == "311311222113\n"
    assert sequence("look-and-say", 1, 5, "--lengths").splitlines()[-1] == "5: 6"
    assert sequence("look-and-say", 22, 10**12) == "22\n"
    out = sequence("look-and-say", 1, 40)
    assert out.endswith("... 82,350 digits; --out FILE writes all\n")
    assert len(out.split("...")[0]) == SHOWN
    assert sequence("look-and-say", 1, 40, "--out", "term.txt") == "term.txt: 1 line\n"
    sequence("look-and-say", 1, 40, "--out", "term.npy")
    assert (tmp_path / "term.txt").read_text().strip() == "".join(map(str, np.load(tmp_path / "term.npy")))


def test_spectrum(sequence, tmp_path):
    for masses in (57, 71, 113, 113, 128), ("57,71,113,113,128",), ("57,", 71, "113 113 128"):
        assert sequence("spectrum", *masses).split() == SPECTRUM
    sequence("spectrum", "GAIKL", "--out", "s.npy")
    sequence("spectrum", "gaikl", "--out", "s.txt")
    assert np.load(tmp_path / "s.npy").tolist() == [int(x) for x in (tmp_path / "s.txt").read_text().split()]
    assert sequence("spectrum", "GAIKL", "--against", "s.npy") == "22 of 22 masses match\n"
    assert sequence("spectrum", "GAIK", "--against", "s.txt") == "12 of 22 masses match\n"
    assert sequence("spectrum", 2, 3, 3, "--counts").splitlines() == ["0 1", "2 1", "3 2", "5 2", "6 1", "8 1"]
    long = sequence("spectrum", *[1] * 40)
    assert long.splitlines()[-1] == "... 1,562 masses; --out FILE writes all"
    assert len(long.splitlines()) == SHOWN + 1


def test_permutations(sequence, tmp_path):
    assert sequence("permutations", 5, "--first", 5, "--count", 1) == "0 1 4 3 2\n"
    assert sequence("permutations", 2, 1, 1).splitlines() == ["1 1 2", "1 2 1", "2 1 1"]
    assert len(sequence("permutations", *[1, 2] * 7200, "--count", 1).split()) == 14400  # of more than 10^4300
    assert sequence("permutations", 2, -1).splitlines() == ["-1 2", "2 -1"]
    shown = sequence("permutations", 12).splitlines()
    assert shown[-1] == "... 479,001,600 permutations; --out FILE writes all"
    assert len(shown) == SHOWN + 1
    sequence("permutations", 6, "--out", "p.npy")
    assert sequence("permutations", 6, "--out", "p.txt") == "p.txt: 720 lines\n"
    rows = [[int(x) for x in line.split()] for line in (tmp_path / "p.txt").read_text().splitlines()]
    assert np.load(tmp_path / "p.npy").tolist() == rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["look-and-say", "1x", 3], "Error: the seed '1x' is not a row of digits, such as 1113122113"),
        (["look-and-say", 1, 5000], "of memory; take fewer steps, or the lengths alone by --lengths"),
        (["look-and-say", 1, 10**9], "of memory; take fewer steps"),
        (["spectrum", 10**15, 5, "--counts"], "a table of masses up to 1,000,000,000,000,005 takes 7.1 PiB"),
        (
            ["look-and-say", 1, 3, "--out", "here.txt"],
            "here.txt exists already; choose another name or pass",
        ),
        (["look-and-say", 1, 3, "--out", "no/where.txt"], "no/where.txt: there is no folder no; make it"),
        (["spectrum", "NQB"], "letter 3 of the peptide is 'B'"),
        (["spectrum", "NQ", "--against", "here.txt"], "here.txt, line 2: 'x' is not a whole mass"),
        (["spectrum", "NQ", "--against", "f.npy"], "f.npy: holds float64 of the shape (3,)"),
        (["permutations", 5, "--first", 500], "first is 500; ranks go from 0 to 119"),
        (["permutations", 20, "--out", "p.npy"], "permutations take 42.2 EiB"),
    ],
)
def test_errors_are_one_line(sequence, tmp_path, arguments, message):
    (tmp_path / "here.txt").write_text("1 2\n3 x\n")
    np.save(tmp_path / "f.npy", np.ones(3))
    error = sequence(*arguments, code=1)
    assert message in error
    assert sum(line.startswith("Error: ") for line in error.splitlines()) == 1
    assert (tmp_path / "here.txt").read_text() == "1 2\n3 x\n"


def test_a_gpu_that_is_missing_is_one_line(sequence, monkeypatch):
    cure = "Error: --device is 'gpu', but CuPy finds no GPU; pass 'cpu' or 'auto'\n"
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False)))
    assert sequence("permutations", 4, "--device", "gpu", code=1).endswith(cure)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "command", ["look-and-say 1 40", "spectrum NQELNQEL", "spectrum 57 71 --counts", "permutations 9 --first 3"]
)
def test_on_a_gpu(gpu, sequence, command):
    for out in [], ["--out", "{}.txt"], ["--out", "{}.npy"]:
        found = []
        for device in "cpu", "gpu":
            text = sequence(*command.split(), *(word.format(device) for word in out), "--device", device)
            found.append((text.replace(device, ""), [Path(word.format(device)).read_bytes() for word in out[1:]]))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["permutations", "a"], "'a' is not a whole number"),
        (["look-and-say", 1, -1], "'STEPS': -1 is not in the range"),
        (["spectrum", ""], "PEPTIDE is empty; give letters such as NQEL"),
        (["spectrum", 57, -3], "a mass is -3; masses are not negative"),
        (["permutations", 300], "N is 300; at most 256"),
        (["spectrum", 57, "x"], "'x' is not a whole number"),
        (["spectrum", 57, 3, "--counts", "--against", "a"], "leave out --counts"),
    ],
)
def test_usage_is_named(sequence, arguments, message):
    assert message in sequence(*arguments, code=2)
