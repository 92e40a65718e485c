"""Look-and-say against the sequence said aloud by itertools, and against published lengths."""

import itertools

import numpy as np
import pytest

from gpuops import look_and_say, look_and_say_lengths
from gpuops.sequences import atoms

PUBLISHED = "1113122113"


def said(text):
    return "".join(f"{len(list(run))}{digit}" for digit, run in itertools.groupby(text))


def digits(text):
    return np.array(list(text), "uint8")


def text_of(term):
    return "".join(map(str, (term if isinstance(term, np.ndarray) else term.get()).tolist()))


def seeds(count):
    """Of digits up to 3 and up to 9, some with a long run in front."""
    rng = np.random.default_rng(0)
    for k in range(count):
        seed = "".join(map(str, rng.integers(*((0, 10), (1, 4))[k % 2], rng.integers(1, 30))))
        yield seed[0] * int(rng.integers(1, 130)) + seed if k % 5 == 0 else seed


def test_terms_and_their_lengths(xp):
    for seed in seeds(60):
        terms = [seed]
        for _ in range(13):
            terms.append(said(terms[-1]))
        for steps in 0, 1, 5, 13:
            found = look_and_say(xp.asarray(digits(seed)), steps)
            assert found.dtype == np.uint8
            assert text_of(found) == terms[steps]
            assert text_of(look_and_say(seed, steps)) == terms[steps]
        assert look_and_say_lengths(xp.asarray(digits(seed)), 13) == [len(term) for term in terms]


def test_published_lengths(xp):
    lengths = look_and_say_lengths(PUBLISHED, 52)
    assert [lengths[steps] for steps in (0, 1, 10, 40, 50, 52)] == [10, 12, 130, 360_154, 5_103_798, 8_670_962]
    assert look_and_say(PUBLISHED, 1).tolist() == [3, 1, 1, 3, 1, 1, 2, 2, 2, 1, 1, 3]
    term = look_and_say(xp.asarray(digits(PUBLISHED)), 40)
    assert len(term) == 360_154
    half = text_of(look_and_say(PUBLISHED, 39))
    assert text_of(term) == said(half)


def test_conways_elements_and_constant():
    found = atoms._apart(b"\1")
    for _ in range(60):
        found = {part for atom in found for part in atoms._decay(atom)}
    assert len(found) == 92
    assert max(map(len, found)) == 42
    lengths = look_and_say_lengths("1", 1000)
    assert lengths[1000] / lengths[999] == pytest.approx(1.303577269034296, rel=1e-12)
    assert look_and_say_lengths("22", 500)[-1] == 2


def test_long_runs():
    assert look_and_say("1" * 12, 1).tolist() == [1, 2, 1]
    assert look_and_say("1" * 12, 1, long_runs="element").tolist() == [12, 1]
    assert look_and_say("1" * 12, 2, long_runs="element").tolist() == [1, 12, 1, 1]
    assert look_and_say_lengths("1" * 12, 3, long_runs="element") == [12, 2, 4, 6]
    assert look_and_say_lengths("1" * 12, 3) == [12, 3, 6, 6]
    assert look_and_say(np.full(255, 200, "uint8"), 1, long_runs="element").tolist() == [255, 200]


def test_nothing(xp):
    for term in look_and_say(xp.empty(0, "uint8"), 3), look_and_say(xp.empty(0, "uint8"), 0):
        assert (len(term), term.dtype) == (0, np.uint8)
    assert look_and_say_lengths(np.empty(0, "uint8"), 2) == [0, 0, 0]


def test_what_describes_itself_is_so_after_any_number_of_steps():
    assert look_and_say("22", 10**12).tolist() == [2, 2]


def test_a_seed_is_not_returned_itself():
    seed = digits("12")
    look_and_say(seed, 0)[0] = 5
    assert seed.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: look_and_say("1a", 2), ValueError, "the seed '1a' is not a row of digits"),
        (lambda: look_and_say("", 2), ValueError, "the seed '' is not a row of digits"),
        (lambda: look_and_say(11, 2), TypeError, "seed is a int; pass a NumPy or a CuPy array"),
        (lambda: look_and_say(np.ones(3, int), 2), TypeError, "seed is int64; pass a str of digits"),
        (lambda: look_and_say(np.full(3, 10, "u1"), 2), ValueError, "seed has the element 10, which is not a digit"),
        (lambda: look_and_say("1", -1), ValueError, "steps is -1; it must not be negative"),
        (lambda: look_and_say("1", 10**12), ValueError, r"a term of [\d,]{12,} digits, .* of memory; take fewer steps"),
        (lambda: look_and_say("1", 1, long_runs="x"), ValueError, "choose digits or element"),
        (lambda: look_and_say("1" * 300, 1, long_runs="element"), ValueError, "a run of 300, and an element counts"),
    ],
)
def test_misuse_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
