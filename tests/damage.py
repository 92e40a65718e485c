"""Damage to the files of stores. Places in a file are drawn as numbers, modulo the number of places."""

import json


def damaged(file, how, bit):
    """The content of a file after damage; None if the file is deleted."""
    content = bytearray(file.read_bytes())
    if how == "delete":
        return None
    if how == "cut":
        return content[: len(content) // 2]
    if content:
        content[bit // 8 % len(content)] ^= 1 << bit % 8
    return content


def flip(file, at=None):
    """Flip a bit of the byte `at` of a file, by default of the middle one."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    file.write_bytes(content)


def changed_attribute(file, place, value):
    """The content of a zarr.json in which a number, text or truth value is another one."""
    try:
        entries = json.loads(file.read_bytes())
    except ValueError:  # it was damaged before
        return b""
    places, folders = [], [entries]
    for folder in folders:
        for key, entry in folder.items() if isinstance(folder, dict) else enumerate(folder):
            if isinstance(entry, dict | list):
                folders.append(entry)
            elif entry is not None:
                places.append((folder, key))
    folder, key = places[place % len(places)]
    old = folder[key]
    others = {bool: [not old], str: ["", f"{old}x", 3]}.get(type(old)) or [old + 1, old - 1, -1, 1 << 40, "x", None]
    folder[key] = others[value % len(others)]
    return json.dumps(entries).encode()
