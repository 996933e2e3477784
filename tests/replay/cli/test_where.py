"""Commands read some of the runs, `--where`, and name the task of those that do not say it."""

import json
import threading
import urllib.request

import pytest
from test_report import pool

import replay
from replay.cli.entry import main
from replay.reports.live import LivePage


@pytest.fixture
def logs(tmp_path, monkeypatch):
    for children, name in ((2, "twos"), (4, "four")):
        for folder in ("logs", name):
            pool(tmp_path / folder, children=children, runs=6, generations=12 // children)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def out_of(capsys, *arguments):
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_a_report_of_some_runs_is_that_of_their_logs(logs, capsys):
    some = out_of(capsys, "report", "logs", "--where", "N=4", "-o", "one.svg")
    alone = out_of(capsys, "report", "four", "-o", "one.svg").replace("four/", "logs/")
    assert some == alone
    assert out_of(capsys, "report", "logs", "-o", "one.svg") != some


def test_a_verdict_and_a_plan_on_some_runs_are_those_on_their_logs(logs, capsys):
    assert main(["judge", "ucb1", "single", "logs", "--arms", "2"]) == 2
    assert "or `--where children=VALUE`" in capsys.readouterr().err
    for command in (["judge", "ucb1", "single"], ["plan", "--budget", "calls=12"]):
        some = out_of(capsys, *command, "logs", "--where", "children=4")
        assert some == out_of(capsys, *command, "four")
    sides = out_of(capsys, "judge", "seed=0", "seed=1", "logs", "--where", "N=2")
    assert "seed = 0" in sides


def test_a_verdict_on_sets_of_logs_takes_some_of_each(logs, capsys):
    both = out_of(capsys, "judge", "twos", "four")
    wanted = [each for seed in range(6) for each in ("--where", f"seed={seed}")]
    assert out_of(capsys, "judge", "twos", "four", *wanted) == both
    assert main(["judge", "twos", "four", "--where", "N=2"]) == 2
    assert "no run has children = 2; there are runs of 4" in capsys.readouterr().err


def test_a_site_and_a_live_page_show_some_runs(logs, capsys):
    out_of(capsys, "site", "logs", "-o", "page", "--where", "N=4", "--where", "seed=1")
    assert len([*(logs / "page" / "runs").iterdir()]) == 1
    with LivePage(logs / "logs", where={"children": ["4"]}) as view:
        while True:
            with urllib.request.urlopen(f"{view.address}/state", timeout=60) as answer:
                state = json.loads(answer.read())
            if not state["unread"]:
                break
        with urllib.request.urlopen(f"{view.address}/parts", timeout=60) as answer:
            parts = answer.read().decode()
        with urllib.request.urlopen(view.link, timeout=60) as answer:
            page = answer.read().decode()
    frame = replay.load("logs")
    wanted = frame.loc[frame["children"] == 4, "run"].nunique()
    assert len(state["runs"]) == wanted
    assert "N = 4" in parts or "<td>4</td>" in parts
    assert "Runs of logs, children=4" in page


def test_the_command_of_the_live_page_takes_the_choice(logs, capfd, monkeypatch):
    def leave(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", leave)
    assert main(["view", "logs", "--where", "n=4"]) == 2
    assert "--where: expected a column among" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["report", "logs", "--where", "N"], "expected COLUMN=VALUE such as"),
        (["report", "--protocol", "x", "--where", "N=4"], "no --where, no --task"),
        (["plan", "logs", "--budget", "8", "--where", "size=4"], "expected a column among"),
        (["report", "logs", "--task", " "], "task: expected the name of the runs' task"),
    ],
)
def test_what_chooses_nothing_is_answered_in_a_line(logs, capsys, given, says):
    assert main(given) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said


ROWS = [f"r{k},{t},{0.1 + 0.4 * k + 0.1 * t}" for k in range(2) for t in (0, 1)]


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """A table of calls that does not say its task, whose runs begin unlike."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls.csv").write_text("\n".join(["run,generation,fitness", *ROWS]) + "\n")
    return "calls.csv"


@pytest.mark.filterwarnings("ignore:.*which lack")
def test_runs_that_do_not_say_their_task_are_named(calls, recwarn):
    with pytest.warns(UserWarning, match=r"if they are of one, name it \(task=, `--task NAME`\)"):
        unnamed = replay.load(calls)
    recwarn.clear()
    named = replay.load(calls, task="hills")
    assert set(named["task"]) == {"hills"}
    assert named.drop(columns=["task", "source"]).equals(unnamed.drop(columns=["task", "source"]))
    assert set(replay.children(calls, task="hills")["task"]) == {"hills"}
    assert set(replay.load_tables(calls, task="hills").runs["task"]) == {"hills"}
    assert not [each for each in recwarn if "do not say" in str(each.message)]


@pytest.mark.filterwarnings("ignore:.*which lack")
def test_runs_that_say_their_task_keep_it(logs):
    assert set(replay.load("logs", task="hills")["task"]) == set(replay.load("logs")["task"])


def test_commands_name_the_task(calls, capsys):
    shown = out_of(capsys, "report", calls, "--task", "hills", "-o", "a.svg")
    assert "hills, model unknown" in shown
    said = out_of(capsys, "import", "table", calls, "--task", "hills", "-o", "kept")
    assert "'hills' is no task that is known here" in said
    assert set(replay.load("kept")["task"]) == {"hills"}
    assert main(["import", "table", calls, "--task", "hills", "--full", "-o", "full"]) == 2
    assert "unknown task 'hills'" in capsys.readouterr().err
