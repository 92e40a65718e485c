"""Convert labels and ids of samples from any source to text."""

from __future__ import annotations

from typing import Any

import numpy as np

# Texts that stand for a missing entry: pyarrow reads them as missing in CSV, or pandas and NumPy print them.
ABSENT = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "<NA>", "NaT"),
    ]
)


def label_text(label: Any) -> str | None:
    """Return the text of a label, or None for a missing label: None, NaN, a masked entry, or text in `ABSENT`.

    >>> label_text(3.0), label_text(12345678), label_text(b"B cell")
    ('3', '12345678', 'B cell')
    >>> label_text(float("nan")), label_text("NA"), label_text("")
    (None, None, None)
    """
    if label is None or label is np.ma.masked:
        return None
    if isinstance(label, bytes):
        label = label.decode(errors="replace")
    elif isinstance(label, float | np.floating):
        label = str(int(label)) if float(label).is_integer() else repr(float(label))
    text = str(label)
    return None if text in ABSENT else text
