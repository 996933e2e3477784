"""What tests of explorers share: hostile texts, moves on the page, and what is sent to it."""

import json

import numpy as np

NASTY = "<script>alert('x')</script>\n# \u202egnp.exe & \x1b[31m"


def went(explorer, place, how="click"):
    """What the browser says once somebody went to a program of the picture."""
    told = {"kind": "at", "generation": place[0], "index": place[1], "how": how, "move": 1}
    explorer._on_message(told)


def without(sweep, N):
    """The tables of a sweep over N that never ran one of them."""
    return [table[table["children"] != N] for table in sweep]


def numbers_of(data):
    """The head of what the browser gets of budgets, and its columns by place."""
    length = int.from_bytes(data[:4], "little")
    head, floats = json.loads(data[4 : 4 + length]), np.frombuffer(data[4 + length :])
    return head, lambda place: floats[place[0] : place[0] + place[1]]
