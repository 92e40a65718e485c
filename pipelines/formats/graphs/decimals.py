"""Recognize numbers in text: plain decimal literals with the digits 0 to 9, no underscores, hexadecimals or `inf`."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INT64_DIGITS = 18  # a number of up to 18 digits fits in int64


def is_whole(word: str) -> bool:
    """Return True if `word` is a whole number."""
    return _WHOLE.fullmatch(word) is not None


def is_number(word: str) -> bool:
    """Return True if `word` is a whole or decimal number."""
    return _NUMBER.fullmatch(word) is not None


def count(word: str) -> int | None:
    """Return the non-negative integer that `word` denotes; None if it is no such integer or has more than 18 digits.

    >>> count("007"), count("-1"), count("9" * 5000), count("٣")
    (7, None, None, None)
    """
    if not (word.isascii() and word.isdecimal() and len(word) <= _INT64_DIGITS):
        return None
    return int(word)


def rounded(word: str) -> bool:
    """Return True if `word` is an integer that is not exact in float64."""
    digits = word.lstrip("+-0") or "0"  # int() reads at most 4,300 digits, leading zeros included
    return is_whole(word) and int(digits) != int(float(digits))
