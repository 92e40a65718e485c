"""Profiles: tables that say which ways of OpenStreetMap someone may take, how fast, and in which direction.

A profile is a TOML file. Those called car, bike and foot lie beside this module (`profiles/*.toml`); their comments
explain each entry. Users copy one, change it, and give its path instead of a name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.formats.errors import FormatError
from pipelines.stores.errors import raise_if_of_system

FOLDER = Path(__file__).with_name("profiles")
NAMES = ("car", "bike", "foot")
ALONG, AGAINST, BOTH = (True, False), (False, True), (True, True)
ONE_WAY = {  # values of the keys of one-way streets
    **dict.fromkeys(("yes", "true", "1"), ALONG),
    **dict.fromkeys(("-1", "reverse"), AGAINST),
    **dict.fromkeys(("no", "false", "0", "reversible", "alternating"), BOTH),
}
MAXSPEED = ("speed", "limit", "ignored")
KMH = {"": 1.0, "km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344, "knots": 1.852}
_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z/]*)")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+)(?::(\d+))?")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


class Travel(NamedTuple):
    """How a way is used: speeds in km/h along and against it, 0 if closed; or seconds for the whole way, 0 if unknown.

    Where `seconds` is known, positive speeds only say which directions are open.
    """

    along: float
    against: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Profile:
    """A profile; for the entries see `profiles/car.toml`."""

    name: str
    access: tuple[str, ...]
    closed: frozenset[str]
    allowed: frozenset[str]
    oneway: tuple[str, ...]
    speeds: Mapping[str, float]
    left_out: frozenset[str] = frozenset()
    implied_oneway: frozenset[str] = frozenset()
    maxspeed: str = "speed"
    ferry: float = 0.0
    barriers: frozenset[str] = frozenset()
    restrictions: tuple[str, ...] = ()
    excepted: frozenset[str] = frozenset()
    speeds_if_allowed: Mapping[str, float] = field(default_factory=dict)
    maxspeeds: Mapping[str, float] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of ways that `travel` looks at, "highway" and "route" first."""
        tags = (tag.partition("=")[0] for tag in sorted(self.left_out | self.implied_oneway))
        limits = ("maxspeed", "maxspeed:forward", "maxspeed:backward") if self.maxspeed != "ignored" else ()
        return tuple(dict.fromkeys(("highway", "route", "duration", *self.access, *self.oneway, *limits, *tags)))

    def travel(self, tags: Mapping[str, str]) -> Travel | None:
        """Return how a way with these tags is used; None if it is left out or closed."""
        if any(tags.get(key) == value for key, _, value in (tag.partition("=") for tag in self.left_out)):
            return None
        access = self._decides(self.access, tags)
        if access in self.closed:
            return None
        kind, seconds = tags.get("highway", ""), 0.0
        speed = self.speeds.get(kind, 0.0)
        if not speed and access in self.allowed:
            speed = self.speeds_if_allowed.get(kind, 0.0)
        if not speed and tags.get("route") == "ferry":
            speed, seconds = self.ferry, duration(tags.get("duration", "")) if self.ferry else 0.0
        if not speed:
            return None
        along, against = self._directions(tags)
        return Travel(
            self._limited(speed, tags, "forward") if along else 0.0,
            self._limited(speed, tags, "backward") if against else 0.0,
            seconds,
        )

    def closes(self, tags: Mapping[str, str]) -> bool:
        """Return whether no path passes a node with these tags."""
        access = self._decides(self.access, tags)
        return access in self.closed if access else tags.get("barrier") in self.barriers

    def restriction(self, tags: Mapping[str, str]) -> str:
        """Return the turn restriction of a relation with these tags, such as "no_left_turn"; "" if none counts."""
        if self.excepted & {each.strip() for each in tags.get("except", "").split(";")}:
            return ""
        return self._decides(self.restrictions, tags)

    @staticmethod
    def _decides(keys: Sequence[str], tags: Mapping[str, str]) -> str:
        return next((tags[key] for key in reversed(keys) if tags.get(key)), "")

    def _directions(self, tags: Mapping[str, str]) -> tuple[bool, bool]:
        for key in reversed(self.oneway):
            if (found := ONE_WAY.get(tags.get(key, ""))) is not None:
                return found
        implied = any(tags.get(key) == value for key, _, value in (tag.partition("=") for tag in self.implied_oneway))
        return ALONG if implied else BOTH

    def _limited(self, speed: float, tags: Mapping[str, str], way: str) -> float:
        if self.maxspeed == "ignored":
            return speed
        limit = self._limit(tags.get(f"maxspeed:{way}", "")) or self._limit(tags.get("maxspeed", ""))
        if self.maxspeed == "speed":
            return limit or speed
        return min(limit or speed, speed)

    def _limit(self, text: str) -> float:
        """Return a speed limit in km/h, the least of several; 0 if it is not known."""
        found = []
        for part in text.casefold().split(";"):
            part = part.strip()
            number = _SPEED.fullmatch(part)
            if number is not None and number[2] in KMH:
                found.append(float(number[1]) * KMH[number[2]])
            else:
                found.append(self.maxspeeds.get(part, self.maxspeeds.get(part.rpartition(":")[2], 0.0)))
        return min(filter(None, found), default=0.0)


def duration(text: str) -> float:
    """Return the seconds of a duration such as 90 (minutes), 1:30, 1:30:00 or PT1H30M; 0 if it is not known.

    >>> duration("1:30"), duration("90"), duration("PT1H30M"), duration("soon")
    (5400.0, 5400.0, 5400.0, 0.0)
    """
    if found := _CLOCK.fullmatch(text.strip()):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(3600 * hours + 60 * minutes + seconds)
    if found := _ISO.fullmatch(text.strip()):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(86400 * days + 3600 * hours + 60 * minutes + seconds)
    return 0.0


def read_profile(given: str | os.PathLike[str]) -> Profile:
    """Return the profile of a name, car, bike or foot, or of a TOML file.

    Raises
    ------
    FormatError
        There is no such profile, or an entry of the file is missing or wrong.
    """
    path = FOLDER / f"{given}.toml" if given in NAMES else Path(given)
    if given not in NAMES and path.suffix != ".toml":
        raise FormatError(f"profile (--profile) is {os.fspath(given)!r}; choose {', '.join(NAMES)}, or a .toml file")
    try:
        entries = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise_if_of_system(error, path)
        raise FormatError(f"{path}: is no profile ({error}); copy {FOLDER / 'car.toml'} and change the copy") from error
    known = {each.name: each for each in fields(Profile) if each.name != "name"}
    for name in entries.keys() - known.keys():
        raise FormatError(f"{path}: there is no entry `{name}`; entries are {', '.join(known)}")
    checked: dict[str, Any] = {name: _entry(path, name, value) for name, value in entries.items()}
    for name in ("access", "closed", "allowed", "oneway", "speeds"):
        if name not in entries:
            raise FormatError(f"{path}: the entry `{name}` is missing; copy it from {FOLDER / 'car.toml'}")
    return Profile(path.stem, **checked)


def _entry(path: Path, name: str, value: Any) -> Any:
    """Return an entry of a profile in its type."""
    if name.startswith(("speeds", "maxspeeds")):
        if not isinstance(value, dict):
            raise FormatError(f"{path}: `{name}` is {value!r}; write a table of speeds in km/h, below [{name}]")
        for key, speed in value.items():
            if type(speed) not in (int, float) or not 0 < speed < 1000:
                raise FormatError(f"{path}, [{name}]: {key} is {speed!r}; write a speed in km/h, above 0")
        return {key: float(speed) for key, speed in value.items()}
    if name == "maxspeed":
        if value not in MAXSPEED:
            raise FormatError(f"{path}: `maxspeed` is {value!r}; choose {', '.join(MAXSPEED)}")
        return value
    if name == "ferry":
        if type(value) not in (int, float) or not 0 <= value < 1000:
            raise FormatError(f"{path}: `ferry` is {value!r}; write a speed in km/h, or 0")
        return float(value)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise FormatError(f"{path}: `{name}` is {value!r}; write a list of texts")
    return tuple(value) if name in ("access", "oneway", "restrictions") else frozenset(value)
