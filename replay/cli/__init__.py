"""The command `replay`."""

from replay.cli.entry import main as main
