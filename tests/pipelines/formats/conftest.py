"""Mutations of files, for the campaigns over all formats.

Small: 330 files in all, by default. Large: 11,000, with ``pytest -m slow``.
"""

from __future__ import annotations

import gzip
import random

import pytest

SMALL, LARGE = 30, 1000  # files of each of the eleven kinds
PIECES = 5  # of the large campaign, for each format

TOKENS = [
    *("", " ", "  ", "\t", ",", ";", '"', '""', "#", "%", "~", "\n", "\n\n", "\r", "\r\n", "\0", "\ufeff", "\u00a0"),
    *("\x1c", "0", "1", "2", "-1", "+1", "01", "1.5", ".5", "7.", "1e3", "1E5", "1e400", "-0.0", "1_0", "0x1F"),
    *("0xFFFFFFFFFFFFFFFF", "٣", "5,5", "5km", "NA", "NAN", "nan", "INF", "inf", "null", "a", "x y", "é", "source"),
    *("target", "from", "to", "weight", "id", "id,source,target", "9" * 18, "9" * 19, "9" * 400, "9" * 5000),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "500000000", "999999999999"),
]  # fmt: skip
BYTES = [token.encode() for token in TOKENS] + [
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc3",
    b"\x1f\x8b",
    b"PAR1",
    b"\x00\x00\x00\x00",
]


def mutate(content: bytes, rng: random.Random) -> bytes:
    """The content after one to three changes, now and then none; perhaps gzip'd, before or after."""
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 3])):
        content = rng.choice(CHANGES)(content, rng)
    if rng.random() < 0.05:
        content = gzip.compress(content, mtime=0)
        if rng.random() < 0.5:
            content = rng.choice([_flip, _cut, _truncate])(content, rng)
    return content


def _span(content, rng, longest):
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.randint(0, longest))


def _flip(content, rng):
    if not content:
        return content
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _cut(content, rng):
    start, stop = _span(content, rng, 12)
    return content[:start] + content[stop:]


def _truncate(content, rng):
    return content[: rng.randrange(len(content) + 1)]


def _insert(content, rng):
    start, stop = _span(content, rng, 4)
    return content[:start] + rng.choice(BYTES) + content[rng.choice([start, stop]) :]


def _replace_field(content, rng):
    """Another token, or another field of the file, in the place of a field."""
    fields = [(i, j) for i, j in _fields(content)]
    if not fields:
        return content
    start, stop = rng.choice(fields)
    i, j = rng.choice(fields)
    return content[:start] + rng.choice([rng.choice(BYTES), content[i:j]]) + content[stop:]


def _fields(content):
    start = 0
    for at, byte in enumerate(content + b"\n"):
        if byte in b" ,;\t\n":
            if at > start:
                yield start, at
            start = at + 1


def _move_lines(content, rng):
    """Drop, double, swap or shuffle lines."""
    lines = content.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines.insert(j, rng.choice(BYTES))
    return b"\n".join(lines)


def _line_breaks(content, rng):
    return content.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\n\r", b"\r\r\n"]), rng.choice([-1, 1]))


def _encoding(content, rng):
    text = content.decode(errors="replace")
    return rng.choice([b"\xef\xbb\xbf" + content, text.encode("utf-16"), text.encode("utf-16-le")])


CHANGES = [_flip, _cut, _truncate, _insert, _insert, _replace_field, _replace_field, _replace_field, _move_lines]
CHANGES += [_move_lines, _line_breaks, _encoding]


@pytest.fixture
def mutations():
    """mutations(campaign, builder, share): for each case its number, and a file that `builder(random)` makes, mutated.

    A `share` of them is mutated, the rest left as built.
    """

    def cases(campaign, builder, share=1.0):
        first, count = campaign
        for case in range(first, first + count):
            rng = random.Random(case)
            content = builder(rng)
            yield case, mutate(content, rng) if rng.random() < share else content

    return cases


def pytest_generate_tests(metafunc):
    """A test that asks for a `campaign` runs over the files of the small one, and under `slow` over the large one."""
    if "campaign" in metafunc.fixturenames:
        each = LARGE // PIECES
        slow = [pytest.param((SMALL + each * i, each), marks=pytest.mark.slow, id=f"{i}") for i in range(PIECES)]
        metafunc.parametrize("campaign", [pytest.param((0, SMALL), id="small"), *slow])
