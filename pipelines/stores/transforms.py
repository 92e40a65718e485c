"""Transforms of single columns of samples, which are applied before the scaling, and their inverses.

============================= ============================================================================
text                          value
============================= ============================================================================
``arcsinh:COFACTOR``          arcsinh(x / cofactor); 5 is customary in mass, 150 in fluorescence cytometry
``log``                       the decimal logarithm, of positive values
``logicle:T:W:M:A``           D. R. Parks, M. Roederer and W. A. Moore (Cytometry A 69, 2006), as in `flowutils`;
                              parameters that are left out are 262144, 0.5, 4.5 and 0
============================= ============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from gpuops.extras import install

DEFAULTS = {"arcsinh": (5.0,), "log": (), "logicle": (262144.0, 0.5, 4.5, 0.0)}


def of_columns(transforms: Mapping[str, str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the transform of each column, "" for no transform.

    `transforms` maps names of columns, or patterns such as ``FL*``, to transforms. A name takes precedence over
    patterns, and an earlier pattern over a later one.

    Raises
    ------
    ValueError
        A transform is unknown, or a name or pattern matches no column.

    >>> of_columns({"FL*": "arcsinh:150", "FL2": "log"}, ["FSC", "FL1", "FL2"])
    ('', 'arcsinh:150', 'log')
    """
    for pattern, text in transforms.items():
        _parsed(text)
        if not any(pattern == name or fnmatchcase(name, pattern) for name in columns):
            shown = ", ".join(map(repr, columns[:12])) + (", ..." if len(columns) > 12 else "")
            raise ValueError(f"there is no column {pattern!r} to transform; columns are {shown}")
    found = []
    for name in columns:
        patterns = [pattern for pattern in transforms if fnmatchcase(name, pattern)]
        found.append(transforms[name] if name in transforms else transforms[patterns[0]] if patterns else "")
    return tuple(found)


def apply(transforms: Sequence[str], values: np.ndarray) -> np.ndarray:
    """Return the transformed values (..., d), float64; NaN stays NaN, and values without a logarithm become -inf."""
    return _each(transforms, values, _forward)


def undo(transforms: Sequence[str], values: np.ndarray) -> np.ndarray:
    """Return the values before the transforms, float64."""
    return _each(transforms, values, _backward)


def check(transforms: Sequence[str]) -> None:
    """Raise ValueError unless every transform is known or empty."""
    for text in transforms:
        if text:
            _parsed(text)


def _each(
    transforms: Sequence[str], values: np.ndarray, one: Callable[[str, tuple[float, ...], np.ndarray], np.ndarray]
) -> np.ndarray:
    if not any(transforms):
        return values
    values = np.array(values, np.float64)
    for column, text in enumerate(transforms):
        if text:
            kind, parameters = _parsed(text)
            there: Any = ~np.isnan(values[..., column])
            there = ... if there.all() else there  # a view of the column, which takes half of the time of a selection
            values[there, column] = one(kind, parameters, values[there, column])
    return values


def _forward(kind: str, parameters: tuple[float, ...], values: np.ndarray) -> np.ndarray:
    if kind == "arcsinh":
        return np.arcsinh(values / parameters[0])
    if kind == "log":
        positive = values > 0
        return np.where(positive, np.log10(np.where(positive, values, 1)), -np.inf)
    return _logicle("logicle", parameters, values)


def _backward(kind: str, parameters: tuple[float, ...], values: np.ndarray) -> np.ndarray:
    if kind == "arcsinh":
        return np.sinh(values) * parameters[0]
    if kind == "log":
        return np.power(10.0, values)
    return _logicle("logicle_inverse", parameters, values)


def _logicle(function: str, parameters: tuple[float, ...], values: np.ndarray) -> np.ndarray:
    try:
        from flowutils import transforms
    except ImportError as error:
        raise ImportError(f"the logicle transform needs flowutils: {install('cytometry')}") from error
    t, w, m, a = parameters
    return np.asarray(getattr(transforms, function)(values[:, None], [0], t=t, w=w, m=m, a=a))[:, 0]


def _parsed(text: str) -> tuple[str, tuple[float, ...]]:
    """Return the kind and the parameters of a transform."""
    kind, *given = str(text).split(":")
    if kind not in DEFAULTS:
        raise ValueError(f"there is no transform {text!r}; choose arcsinh:COFACTOR, log or logicle:T:W:M:A")
    defaults: tuple[Any, ...] = DEFAULTS[kind]
    try:
        parameters = tuple(map(float, given)) + defaults[len(given) :]
        first = parameters[0] if parameters else 1.0
        if len(parameters) != len(defaults) or not np.isfinite(parameters).all() or not 1e-100 <= first <= 1e100:
            raise ValueError
        if kind == "logicle" and not 0 < 2 * parameters[1] <= parameters[2]:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"the transform {text!r} has invalid parameters; give, for example, arcsinh:5 or logicle:262144"
        ) from None
    return kind, parameters
