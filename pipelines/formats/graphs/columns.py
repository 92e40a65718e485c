"""Find the columns of tail, head and weight in a table of edges, by well-known names or by position."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.formats.errors import FormatError
from pipelines.formats.text_file import count
from pipelines.stores.schema import counted

# Names of tail and head. Case, blanks, and words such as "node" and "id" around a name are ignored. Both names of a
# pair must be present. The names in `_VAGUE` could also be names of vertices.
_AROUND = "(?:id|node|vertex)*(?:{})(?:id|node|vertex|name|label|index)*"
_PAIRS = tuple(
    (_AROUND.format(tail), _AROUND.format(head))
    for tail, head in (
        ("source|src", "target|tgt|dest|destination|dst"),
        ("from", "to"),
        ("tail", "head"),
        ("origin|orig", "destination|dest"),
        ("start|begin", "end|stop"),
        ("init|initial", "term|terminal"),
    )
)
_VAGUE = (("u", "v"), ("i", "j"), ("s", "t"), ("(?:id|node|vertex)1", "(?:id|node|vertex)2"))
_WEIGHTS = re.compile(
    "(?:edge)?(?:weights?|w|wt|length|len|costs?|dist|distances?|duration|traveltime|freeflowtime|km|meters|metres|miles)"
)
_NO_WEIGHTS = re.compile("|(?:edge|arc|link)?(?:id|index|key|type|kind|label|name)|unnamed0|idx|fid")
_DIRECTIONS = re.compile("(?:is)?oneway.*|(?:traffic|travel|flow|drive)?dir(?:ection)?s?(?:oftravel)?|einbahn.*")


class Columns(NamedTuple):
    """Positions of the columns to read. If `weight` is None, the graph is unweighted."""

    tail: int
    head: int
    weight: int | None

    def described(self, names: Sequence[str]) -> str:
        """Return text for the user that names the columns of tails, heads and weights."""

        def column(position: int) -> str:
            return f"column {position}" + (f" ({names[position]})" if position < len(names) else "")

        weights = "no weights, so each arc counts 1" if self.weight is None else f"weights from {column(self.weight)}"
        return f"tails from {column(self.tail)}, heads from {column(self.head)}, {weights}"

    def unread(self, names: Sequence[str]) -> str:
        """Return text for the user about columns of directions, which are read in layers and data frames only."""
        found = [name for name in names if may_be_directions(name)]
        return f"; {listed(found)} is not read, each row leads from tail to head" if found else ""


def choose_columns(
    source: str, width: int, names: Sequence[str], columns: Sequence[str | int] | None, weight: str | int | None
) -> Columns:
    """Return the columns to read among `width` columns called `names` (empty if the columns have no names).

    By default, tails and heads are the columns with a well-known pair of names, such as source and target, else the
    first two columns. The weight is then the only column with a well-known name for weights, else the third column of
    three.

    Raises
    ------
    FormatError
        A column is missing, or the choice is unclear.
    """
    known = f"columns are {listed(names)}" if names else f"columns are 0 to {width - 1}, without a header"
    choice = "name tail, head and weight (columns, --columns TAIL,HEAD,WEIGHT)"
    if columns is None:
        pairs = well_known_pairs(names, vague=False) or well_known_pairs(names)
        if len(pairs) > 1:
            raise FormatError(f"{source}: several columns may hold tails and heads; {known}; {choice}")
        if pairs:
            columns = pairs[0]
            if weight is None and (found := _weight_beside(source, pairs[0], names, known)) is not None:
                columns = [*columns, found]
        elif width < 2 or (width > 3 and weight is None):
            raise FormatError(
                f"{source}: has {counted(width, 'column')} ({known}); {choice}, or give "
                "their separator (delimiter, --delimiter)"
            )
        else:
            columns = range(2 if weight is not None else width)
            _refuse_misplaced(source, names, columns, f"{known}; {choice}")
    if weight is not None and len(columns) == 2:
        columns = [*columns, weight]
    elif weight is not None or len(columns) not in (2, 3):
        raise FormatError(
            f"{source}: give two columns, tail and head, and optionally the weight (columns, --columns 0,1,2)"
        )
    positions = [_position(source, column, width, names, known) for column in columns]
    if len(set(positions)) != len(positions):
        raise FormatError(f"{source}: columns {positions} are not distinct; give each once (columns, --columns)")
    return Columns(positions[0], positions[1], positions[2] if len(positions) == 3 else None)


def listed(names: Sequence[str]) -> str:
    """Return the names of columns for a message: at most 12 names, and long names shortened."""
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in names[:12]]
    return ", ".join(shown) + ", ..." * (len(names) > 12)


def well_known_pairs(names: Sequence[str], vague: bool = True) -> list[tuple[int, int]]:
    """Return the positions of column pairs with well-known names for tail and head; `vague` includes doubtful names."""
    return [
        (tail, head)
        for pair in _PAIRS + _VAGUE * vague
        for tail in _called(pair[0], names)
        for head in _called(pair[1], names)
    ]


def well_known_weights(names: Sequence[str]) -> list[str]:
    """Return the names of columns with a well-known name for weights."""
    return [name for name in names if _WEIGHTS.fullmatch(_normal(name))]


def may_be_weights(name: str) -> bool:
    """Return whether a column of numbers may hold weights by its name, which is no name for ids or kinds of rows."""
    return not re.fullmatch(f"osmid|reversed|(?:{_NO_WEIGHTS.pattern})", _normal(name))


def unread_numbers(what: str, names: Iterable[str]) -> list[str]:
    """Return a warning that no attribute of numbers was taken for weights; none if no attribute may be weights.

    `names` are the attributes of the edges that hold numbers; ids are not counted.
    """
    found = [name for name in dict.fromkeys(names) if may_be_weights(name)]
    if not found:
        return []
    return [f"{what}: weights are 1 for each arc; the edges have {listed(found)}: choose one (weight, --weight)"]


def may_be_directions(name: str) -> bool:
    """Return whether a column may say by its name where one-way roads lead."""
    return bool(_DIRECTIONS.fullmatch(_normal(name)))


def _called(words: str, names: Sequence[str]) -> list[int]:
    return [position for position, name in enumerate(names) if re.fullmatch(words, _normal(name))]


def _normal(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _weight_beside(source: str, ends: tuple[int, int], names: Sequence[str], known: str) -> int | None:
    """Return the column of weights among the columns other than `ends`; None if there is no such column."""
    others = [column for column in range(len(names)) if column not in ends]
    weights = [column for column in others if _WEIGHTS.fullmatch(_normal(names[column]))]
    if len(weights) == 1:
        return weights[0]
    others = weights or [column for column in others if not _NO_WEIGHTS.fullmatch(_normal(names[column]))]
    if others == [2] and len(names) == 3:
        return 2
    if others:
        raise FormatError(
            f"{source}: it is unclear which column holds the weights; {known}; "
            f"name it (weight, --weight), or leave weights out (columns, --columns {ends[0]},{ends[1]})"
        )
    return None


def _refuse_misplaced(source: str, names: Sequence[str], columns: range, known: str) -> None:
    """Raise FormatError if the name of a column contradicts the use of the column that its position implies."""
    roles = *("|".join(words) for words in zip(*_PAIRS, strict=True)), _WEIGHTS.pattern
    for position, name in enumerate(names):
        place = position if position in columns else None
        normal = _normal(name)
        said = [role for role, words in enumerate(roles) if len(normal) > 1 and re.fullmatch(words, normal)]
        beside = place is None and said == [2]  # a further column of weights, which the user did not choose
        key = place is not None and len(columns) == 3 and (normal or place < 2) and _NO_WEIGHTS.fullmatch(normal)
        if key or (said and place not in said and not beside):
            raise FormatError(f"{source}: it is unclear what column {position}, called {name[:40]!r}, holds; {known}")


def _position(source: str, column: str | int, width: int, names: Sequence[str], known: str) -> int:
    if isinstance(column, str) and column in names:
        if list(names).count(column) > 1:
            raise FormatError(f"{source}: several columns are called {column[:40]!r}; give the column's number, from 0")
        return list(names).index(column)
    position = count(column) if isinstance(column, str) else column
    if position is None or not 0 <= position < width:
        raise FormatError(f"{source}: there is no column {column!r:.40}; {known}")
    return position
