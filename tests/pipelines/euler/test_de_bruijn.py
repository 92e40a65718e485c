"""De Bruijn sequences: every word once."""

import numpy as np
import pytest
from commands import invoke

from gpuops.errors import VerificationError
from pipelines.euler import de_bruijn
from pipelines.euler.de_bruijn import de_bruijn_codes, de_bruijn_sequence, verify_de_bruijn
from pipelines.workers.capacity import DoesNotFitError


def windows(text, order, cyclic):
    around = text + text[: order - 1] if cyclic and len(text) >= order else text * order if cyclic else text
    return [around[i : i + order] for i in range(len(text) if cyclic else len(text) - order + 1)]


@pytest.mark.parametrize(
    ("alphabet", "order"), [("01", 1), ("01", 2), ("01", 9), ("abc", 4), ("ACGT", 5), ("x", 1), ("x", 4), ("ñ€😀", 3)]
)
@pytest.mark.parametrize("cyclic", [False, True])
def test_every_word_is_there_once(alphabet, order, cyclic):
    sequence = de_bruijn_sequence(alphabet, order, cyclic=cyclic)
    words = windows(sequence, order, cyclic)
    assert len(words) == len(set(words)) == len(alphabet) ** order
    assert set(sequence) == set(alphabet)
    if len(sequence) >= order:
        assert sequence.startswith(alphabet[0] * order)


def test_a_lock_of_four_digits_opens_after_10_003_keys():
    sequence = de_bruijn_sequence("0123456789", 4)
    assert len(sequence) == 10_003
    assert {sequence[i : i + 4] for i in range(10_000)} == {f"{pin:04}" for pin in range(10_000)}


def test_the_certificate_finds_a_word_that_is_missing():
    codes = de_bruijn_codes(3, 4, cyclic=True)
    verify_de_bruijn(codes, 3, 4)
    with pytest.raises(VerificationError, match="80 letters; 81 words"):
        verify_de_bruijn(codes[1:], 3, 4)
    codes[5] = (codes[5] + 1) % 3
    with pytest.raises(VerificationError, match=r"the word \[.*\] is missing"):
        verify_de_bruijn(codes, 3, 4)


def test_letters_beyond_a_byte():
    codes = de_bruijn_codes(300, 2, cyclic=True)
    assert codes.dtype == np.uint32
    verify_de_bruijn(codes, 300, 2)


@pytest.mark.parametrize(
    ("alphabet", "order", "message"),
    [
        ("", 2, "alphabet: it is empty"),
        ("aba", 2, "alphabet: 'a' occurs twice"),
        ("ab", 0, "order is 0; give a whole number from 1"),
    ],
)
def test_misuse_is_named(alphabet, order, message):
    with pytest.raises(ValueError, match=message):
        de_bruijn_sequence(alphabet, order)


@pytest.mark.parametrize("order", [20, 10**9])
def test_what_does_not_fit_is_refused_at_once(monkeypatch, order):
    monkeypatch.setattr(de_bruijn, "available_memory", lambda: 1 << 20)
    with pytest.raises(DoesNotFitError, match=rf"there are 2\^{order} words.*give an order of 14 at most"):
        de_bruijn_codes(2, order)


def test_the_command(tmp_path):
    def run(*arguments):
        return invoke("sequence", "de-bruijn", *arguments)

    assert run("01", 3).output == "0001011100\n"
    out = tmp_path / "pins.txt"
    assert run("0123456789", 4, "--out", out).output == f"{out}: 10,003 letters; 10,000 words, each once\n"
    single = tmp_path / "single.txt"
    assert run("a", 1, "--out", single).output == f"{single}: 1 letter; 1 word, each once\n"
    assert len(out.read_text()) == 10_004
    assert isinstance(run("01", 3, "--out", out).exception, FileExistsError)
    assert len(out.read_text()) == 10_004
