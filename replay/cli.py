"""The command `replay`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evo.cli import dispatch

COMMANDS = {
    "report": "replay.commands:report",
    "site": "replay.commands:make_site",
    "plan": "replay.commands:plan",
    "import": "replay.commands:import_runs",
    "export": "replay.commands:export_runs",
}
"""Where each command stands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    text = "Read logs of evolutionary search, replay policies, report."
    return dispatch("replay", text, COMMANDS, arguments, {})


if __name__ == "__main__":
    sys.exit(main())
