"""The command `evo`."""

from evo.cli.entry import main as main
