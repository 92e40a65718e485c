"""Damage to the files of stores, drawn by Hypothesis."""

import json

from hypothesis import strategies as st


def damaged(file, how, draw):
    """The content of a file after damage; None if the file is deleted."""
    content = bytearray(file.read_bytes())
    if how == "delete":
        return None
    if how == "cut":
        return content[: len(content) // 2]
    if content:
        place = draw(st.integers(0, 8 * len(content) - 1), "bit")
        content[place // 8] ^= 1 << place % 8
    return content


def changed_attribute(file, draw):
    """The content of a zarr.json in which a number, text or truth value is another one."""
    try:
        entries = json.loads(file.read_bytes())
    except ValueError:  # it was damaged before
        return b""
    places, folders = [], [entries]
    for folder in folders:
        for key, value in folder.items() if isinstance(folder, dict) else enumerate(folder):
            if isinstance(value, dict | list):
                folders.append(value)
            elif value is not None:
                places.append((folder, key))
    folder, key = draw(st.sampled_from(places), "place")
    old = folder[key]
    others = {bool: [not old], str: ["", f"{old}x", 3]}.get(type(old)) or [old + 1, old - 1, -1, 1 << 40, "x", None]
    folder[key] = draw(st.sampled_from(others), "value")
    return json.dumps(entries).encode()
