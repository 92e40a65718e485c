"""The error of sources that cannot be read."""

import re


class FormatError(ValueError):
    """A source cannot be read. The message is one line and names the source, the faulty line or row, and the cure."""

    def __init__(self, message: str):
        super().__init__(re.sub(r"\s*\n\s*", " ", message.strip()))  # messages of libraries may have several lines
