"""The command itself: how mistakes, interrupts and closed streams end."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from commands import call, one_line

import evo
from evo.cli import entry
from evo.cli.entry import dispatch
from evo.warning import warn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "unknown task 'nothing'"),
        (["run", "mmd", "--model", "nobody"], "nobody"),
        (["run", "mmd", "--seeds", "50:40"], "expected at least one"),
        (["run", "mmd", "-T", "0"], "expected at least 1, got 0"),
        (["run", "mmd", "-N", "many"], "expected a whole number, got 'many'"),
        (["run", "mmd", "--log-dir", "/proc/nowhere"], "cannot write"),
        (["run", "mmd", "--timeout", "1e30"], "at most 1,000,000"),
        (["run", "mmd", "--workers", "1000000"], "workers: expected at most 1,000, got 1000000"),
        (["verify", "nowhere.jsonl"], "no such file"),
        (["run", "mmd", "--seeds", "1:3", "--log", "x.jsonl"], "goes with one seed"),
        (["run", "mmd", "--seeds", "1:3", "--seed", "5"], "give one of them"),
        (["run", "--protocol", "local-tsp", "--seed", "5"], "--protocol fixes"),
        (["run", "mmd", "--nonsense"], "Unknown option: --nonsense"),
        (["resume", "nowhere.jsonl"], "nowhere.jsonl"),
        (["show", "README.md"], "not a log of evo"),
        (["show", "."], ".: expected a log or a folder of logs, found no *.jsonl in it"),
        (["allocate", "mmd", "--policy", "luck"], "expected a policy"),
        (["allocate", "mmd", "--policy", "ucb1", "--set", "c"], "expected NAME=NUMBER"),
        (
            ["allocate", "mmd", "--policy", "ucb1", "--arm", "children=few"],
            "expected a whole number, got 'few'",
        ),
        (["allocate", "mmd", "--policy", "ucb1", "--arm", "hue=1"], "unknown argument 'hue'"),
        (["frobnicate"], 'Unknown command "frobnicate"'),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readme = Path("README.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text(readme)
    assert call(*arguments) == 2
    assert message in one_line(capsys)


def test_ctrl_c_while_a_command_is_loaded_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "interrupted_import.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)
    assert dispatch("evo", "", {"Search": {"run": "interrupted_import:run"}}, ["run"], {}) == 130
    assert one_line(capsys) == "evo: stopped"


def test_ctrl_c_says_how_to_go_on_only_where_something_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stopped_early.py").write_text("raise KeyboardInterrupt")
    (tmp_path / "stopped_late.py").write_text(
        "from evo.logs.journal import write_new\n"
        "from pathlib import Path\n"
        "write_new(Path(__file__).with_name('sweep.json'), b'{}')\n"
        "raise KeyboardInterrupt"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = {"sweep": "paused; the same command goes on"}
    for module, said in (
        ("stopped_late", words["sweep"]),
        ("stopped_early", "stopped before anything was started or written"),
    ):
        commands = {"Compare": {"sweep": f"{module}:sweep"}}
        assert dispatch("evo", "", commands, ["sweep"], words) == 130
        assert said in one_line(capsys)


def test_sandbox_that_cannot_start_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert call("run", "mmd", "-q", "--log", str(tmp_path / "a.jsonl")) == 1
    assert "sandbox process could not be started" in one_line(capsys)


@pytest.mark.parametrize("kind", [TypeError, KeyError, AttributeError, IndexError, RuntimeError])
def test_a_bug_is_no_mistake_of_the_user(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise kind("nonsense")

    assert entry.guard("evo", fail) == 1
    captured = capsys.readouterr().err
    assert "Traceback" in captured
    assert f"{kind.__name__}: " in captured
    assert captured.splitlines()[-1].startswith("evo: this is a bug: please report it")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_a_command_whose_standard_streams_are_closed_does_its_work(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    code = (
        f"import os, sys\nfor each in {closed}:\n    os.close(each)\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'evo', *sys.argv[1:]])"
    )
    path = tmp_path / "a.jsonl"
    arguments = ["run", "mmd", "-T", "1", "-N", "1", "--log", str(path)]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert evo.read_log(path).finished
    assert not path.read_bytes().startswith(b"1 run")


def test_a_note_is_given_once_though_a_package_changes_the_filters_of_warnings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "warnoptions", [])

    def work() -> int:
        for _ in range(3):
            warn("some runs are left out")
            warnings.filterwarnings("ignore", "nothing that is ever said")
        warn("others too")
        return 0

    assert entry.guard("evo", work) == 0
    notes = capsys.readouterr().err.splitlines()
    assert notes == ["evo: note: some runs are left out", "evo: note: others too"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", [["tasks"], ["--help"]])
def test_what_cannot_be_written_is_named(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "evo", *arguments], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.stderr == "evo: standard output: cannot write there: No space left on device\n"
    assert done.returncode == 2
