"""Numbers in text are plain decimal literals: no underscores, no hexadecimal, no digits but 0 to 9, no `inf`."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INT64_DIGITS = 18  # that surely fit in int64


def is_whole(word: str) -> bool:
    """Whether the word is a whole number."""
    return _WHOLE.fullmatch(word) is not None


def is_number(word: str) -> bool:
    """Whether the word is a number, whole or not."""
    return _NUMBER.fullmatch(word) is not None


def count(word: str) -> int | None:
    """The count that the word denotes; None if it is not one, or has more than 18 digits.

    >>> count("007"), count("-1"), count("9" * 5000), count("٣")
    (7, None, None, None)
    """
    if not (word.isascii() and word.isdecimal() and len(word) <= _INT64_DIGITS):
        return None
    return int(word)


def rounded(word: str) -> bool:
    """Whether the word is an integer that float64 does not hold exactly."""
    digits = word.lstrip("+-0") or "0"  # Python reads at most 4,300 of them, zeros included
    return is_whole(word) and int(digits) != int(float(digits))
