"""The command `replay`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evo.cli.entry import dispatch
from evo.neighbours import require_ours

COMMANDS = {
    "Look": {
        "report": "replay.cli.commands:report",
        "site": "replay.cli.commands:make_site",
        "view": "replay.cli.commands:view",
        "judge": "replay.cli.judge:judge",
        "plan": "replay.cli.plan:plan",
        "bench": "replay.cli.bench:bench",
    },
    "Exchange": {
        "samples": "replay.cli.commands:samples",
        "notebooks": "replay.cli.commands:notebooks",
        "import": "replay.cli.commands:import_runs",
        "export": "replay.cli.commands:export_runs",
    },
}
"""Where each command stands, by group."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    require_ours(sys.modules["replay"], "simulate")
    text = "Read logs of evolutionary search, replay policies, report."
    return dispatch("replay", text, COMMANDS, arguments, {})


if __name__ == "__main__":
    sys.exit(main())
