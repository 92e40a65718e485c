"""A plugin for pytest that counts what the NetworkX backend answered: NetworkX's own answers look the same in a test.

The counts go to the file that TILEPATH_ANSWERS names, as JSON: answers by function, and the refusals with their
reasons. An error of NetworkX's is an answer, too.
"""

import collections
import functools
import json
import os
from pathlib import Path

import tilepath.networkx.backend as backend
from tilepath.networkx.info import FUNCTIONS

ANSWERS, REFUSALS = collections.Counter(), collections.Counter()


def _counting(name, function):
    @functools.wraps(function)
    def counted(*args, **kwargs):
        try:
            result = function(*args, **kwargs)
        except NotImplementedError as error:
            REFUSALS[f"{name}: {error}"] += 1
            raise
        except Exception:
            ANSWERS[name] += 1
            raise
        if hasattr(result, "__next__"):
            return _counting_the_end(name, result)
        ANSWERS[name] += 1
        return result

    return counted


def _counting_the_end(name, results):
    yield from results
    ANSWERS[name] += 1


def _noting_refusals(function):
    @functools.wraps(function)
    def noted(*args, **kwargs):
        try:
            result = function(*args, **kwargs)
        except NotImplementedError as error:
            REFUSALS[f"conversion: {error}"] += 1
            raise
        if isinstance(result, str):
            REFUSALS[f"{args[0]}: {result}"] += 1
        return result

    return noted


for _name in (name for names in FUNCTIONS.values() for name in names):
    setattr(backend, _name, _counting(_name, getattr(backend, _name)))
backend.can_run = _noting_refusals(backend.can_run)
backend.convert_from_nx = _noting_refusals(backend.convert_from_nx)


def pytest_sessionfinish():
    counts = {"answers": ANSWERS, "refusals": REFUSALS}
    Path(os.environ["TILEPATH_ANSWERS"]).write_text(json.dumps(counts, indent=1))
