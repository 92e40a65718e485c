"""Files for the campaigns over all formats: nearly right ones, and bytes that are no file at all."""

from __future__ import annotations

import gzip
import random
import re

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


def drawn(rng, make, mutated=1.0):
    """What `make` builds, and how it is then spoiled; `rng` is the generator of a campaign.

    A share `mutated` of the files is changed, the rest left as built. One file in ten is bytes or tokens at random.
    """
    rng = random.Random(int(rng.integers(2**63)))
    if rng.random() < 0.1 * mutated:
        return rng.choice([rng.randbytes(rng.randrange(60)), b" ".join(rng.choices(BYTES, k=rng.randrange(40)))])
    content = make(rng)
    return mutate(content, rng) if rng.random() < mutated else content


def mutate(content: bytes, rng: random.Random) -> bytes:
    """The content after one to three changes, now and then none; perhaps gzip'd, before or after."""
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 3])):
        content = rng.choice(CHANGES)(content, rng)
    if rng.random() < 0.05:
        content = gzip.compress(content, mtime=0)
        if rng.random() < 0.2:
            content += rng.choice([content, b"\0" * 512, b"0 1 2\n"])  # a second member, padding, rubbish
        elif rng.random() < 0.5:
            content = rng.choice([_flip, _cut, _truncate])(content, rng)
    return content


def refused(error, file):
    """The outcome of a trial, if the error names the file in one clear line; else AssertionError."""
    message = str(error)
    assert str(file) in message, message
    assert "\n" not in message, message
    assert len(message) < 1000, message
    assert not re.search(r"Traceback|Error\(|codec can't|site-packages|<[a-z_.]+ object", message), message
    return "refused"


def unzipped(content: bytes) -> bytes:
    """The content of a gzip file, or `content` if it is none."""
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


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


def _repeat(content, rng):
    start, stop = _span(content, rng, 12)
    return content[:stop] + content[start:stop] * rng.choice([1, 1, 2, 40]) + content[stop:]


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


CHANGES = [
    _flip,
    _cut,
    _truncate,
    _repeat,
    _insert,
    _insert,
    _replace_field,
    _replace_field,
    _replace_field,
    _move_lines,
]
CHANGES += [_move_lines, _line_breaks, _encoding]
