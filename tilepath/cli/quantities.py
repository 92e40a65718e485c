"""Types of option values: numbers, sizes such as 16GiB, and seconds or "none"."""

from __future__ import annotations

import math
import re
from typing import Any

import click

UNITS = {"": 1} | {unit: 1 << 10 * (1 + power) for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"))}
UNITS |= {unit: 1000 ** (1 + power) for power, unit in enumerate(("kB", "MB", "GB", "TB"))}


class Number(click.types.FloatParamType):
    """A number. "nan" is refused, since no comparison with a bound would catch it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


class Bytes(click.ParamType):  # type: ignore[type-arg]  # of newer Clicks only
    """A number of bytes, with a unit or without.

    >>> BYTES("16GiB"), BYTES("1.5 MB"), BYTES("4096")
    (17179869184, 1500000, 4096)
    """

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", value.strip())
        units = {unit.lower(): factor for unit, factor in UNITS.items()}
        if found is None or found[2].lower() not in units or float(found[1]) == 0:
            self.fail(f"{value!r} is not a size; write it as 16GiB, 500MB or a number of bytes", param, ctx)
        return int(float(found[1]) * units[found[2].lower()])


class SecondsOrNone(click.ParamType):  # type: ignore[type-arg]
    """Seconds, 0 or more; "none" is infinity.

    >>> SECONDS_OR_NONE("none"), SECONDS_OR_NONE("2.5")
    (inf, 2.5)
    """

    name = "seconds|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "none":
            return float("inf")
        try:
            seconds = float(value)
        except ValueError:
            seconds = float("nan")
        if not seconds >= 0:
            self.fail(f"{value!r} is not a number of seconds, 0 or more; write it as 60, or as none", param, ctx)
        return seconds


NUMBER = Number()
BYTES = Bytes()
SECONDS_OR_NONE = SecondsOrNone()
