"""Help, short by default and complete."""

import subprocess
import sys

import pytest
from commands import call


def test_help_states_the_logs_own_values_as_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("fork", "resume"):
        shown = " ".join(help_of(capsys, command, "--help").split())
        assert "Number of generations T (default: as in the log)." in shown


def help_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert call(*arguments) == 0
    return capsys.readouterr().out


def test_help_groups_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(capsys, "--help").splitlines()
    titles = [line for line in lines if line.endswith(":")]
    assert titles == ["Search:", "Look:", "Compare:", "Control:", "Serve:", "Help:"]
    assert any(line.split()[:1] == ["run"] for line in lines)


def test_short_help_shows_what_everybody_needs_and_the_complete_one_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few, every = help_of(capsys, "run", "--help"), help_of(capsys, "run", "--help-all")
    assert 10 <= few.count("\n  -") <= 16
    assert every.count("\n  -") > 30
    assert "--share-alpha" in every
    assert "--share-alpha" not in few
    assert "--help-all" in few
    for word in ("None", "Settings", "logs/local)"):
        assert (word in every) == (word == "logs/local)")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["allocate", "--help-all"]])
def test_help_loads_nothing_but_the_command_lines_library(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom evo.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    heavy = {"numpy", "msgspec", "openai", "joblib", "evo.logs.records", "evo.runs.verbs"}
    assert loaded & heavy == set()
