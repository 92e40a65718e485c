"""Messages of the Python interface, in the words of the command line."""

from __future__ import annotations

import re

import click

# How a message of the Python interface writes an argument: as name=value, as a name of several words, or, where the
# message begins, as `name is`. Elsewhere a name of one word is followed by its option in parentheses.
_ASSIGNED = r"(?<![\w./'\"-])[a-z]+(?:_[a-z]+)*=(?:'[^']*'|[^\s,;:()'\"]*)"
_NAMED = r"(?<![\w./'\"-])[a-z]+(?:_[a-z]+)+(?![\w./'\"-])"
_LEADING = r"^[a-z]+(?= is )"
_WORD = r"(?<![\w./'\"-])[a-z_]+"


def say(message: str, err: bool = False) -> None:
    """Print a message of the Python interface, with the options of the current command in place of arguments."""
    click.echo(in_options_of(click.get_current_context().command, message), err=err)


def in_options_of(command: click.Command, message: str) -> str:
    """Return `message` with the options of a command in place of Python arguments."""
    options = {param.name or "": each for param in command.params for each in param.opts if each.startswith("--")}
    return with_options(message, options)


def with_options(message: str, options: dict[str, str]) -> str:
    """Return a message of the Python interface with each argument replaced by the command's option for it.

    If the message names an argument and then, in parentheses, its option, only the option is kept, also if it is an
    option of another command.

    >>> options = {"tip_letters": "--tips", "device": "--device", "overwrite": "--overwrite"}
    >>> with_options("tip_letters is -5", options), with_options("use device='cpu'", options)
    ('--tips is -5', 'use --device cpu')
    >>> with_options("device is 'tpu'; pass overwrite=True", options)
    "--device is 'tpu'; pass --overwrite"
    >>> with_options("pass labels=True (--labels), or pass directed=True (leave out --undirected)", options)
    'pass --labels, or leave out --undirected'
    >>> with_options("tip_letters (--tips) is -5; choose another file (--out) or pass overwrite (--overwrite)", options)
    '--tips is -5; choose another file (--out) or pass --overwrite'
    """

    def option(found: re.Match[str]) -> str:
        name, _, value = found[0].partition("=")
        if name not in options:
            return found[0]
        return f"{options[name]} {'' if value == 'True' else value.strip(chr(39))}".rstrip()

    def kept(found: re.Match[str]) -> str:
        option_of_name = options.get(found["name"]), "--" + found["name"].replace("_", "-")
        named = "=" in found["name"] or found["option"] in option_of_name
        return (found["without"] or found["verb"] or "") + found["option"] if named else found[0]

    both = rf"(?P<verb>pass )?(?P<name>{_ASSIGNED}|{_WORD}) \((?P<without>leave out )?(?P<option>--[^()]+)\)"
    message = re.sub(both, kept, message)
    message = re.sub(rf"\((?:{_ASSIGNED}|{_WORD}), (--[^()]+)\)", r"(\1)", message)
    return re.sub(f"{_ASSIGNED}|{_NAMED}|{_LEADING}", option, message)
