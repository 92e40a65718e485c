"""Families of tests: some of which always run, the others being slow."""

import itertools

import pytest

SLOW = [pytest.mark.slow]


def diagonals(*values, count=1):
    """Parameters of all combinations of the values; by default such that each value occurs in `count` of them or more.

    A diagonal is the first values, the second ones and so on, shorter lists beginning again; the next one begins with
    every list shifted by one against the list before it.
    """
    sizes = [len(each) for each in values]
    always = {
        tuple((step + shift * place) % size for place, size in enumerate(sizes))
        for shift in range(count)
        for step in range(max(sizes))
    }
    return [
        pytest.param(*(each[i] for each, i in zip(values, chosen, strict=True)), marks=[] if chosen in always else SLOW)
        for chosen in itertools.product(*map(range, sizes))
    ]


def one_in(count, parameters):
    """The parameters, of which by default the first of so many runs, and the first of the next so many."""
    return [
        pytest.param(
            *(given.values if hasattr(given, "values") else given),
            id=getattr(given, "id", None),
            marks=SLOW if number % count else [],
        )
        for number, given in enumerate(parameters)
    ]
