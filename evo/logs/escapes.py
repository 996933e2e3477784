"""Text out of a log as a terminal may have it."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # what turns the direction of writing
)


def plain_text(text: str) -> str:
    """Returns a text that a terminal shows and does not obey: control characters are escaped.

    Ends of lines and tabs stay.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
