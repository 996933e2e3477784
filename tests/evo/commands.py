"""Commands as they are called on the command line."""

import pytest

from evo.cli.entry import main


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The only line that was printed as an error."""
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line]
    assert len(lines) == 1, captured.err
    assert "Traceback" not in captured.err
    return lines[0]


def call(*arguments: str) -> int:
    """The exit status of a command."""
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
