import io
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands import call, one_line

import evo
import replay
from evo.cli import entry
from evo.cli.going_on import resume_command
from evo.cli.options import instance_range
from evo.models.registry import find_model
from evo.runs.configuration import seeds_of
from replay.cli.entry import main as replay_main


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    assert call("run", "mmd", "-T", "2", "-N", "2", "--log", str(folder / "a.jsonl"), "-q") == 0
    return folder / "a.jsonl"


def test_wrong_key_in_a_task_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "task.toml").write_text("nmae = 'x'\n")
    assert call("run", str(tmp_path)) == 2
    assert "did you mean 'name'" in one_line(capsys)


def test_torn_and_foreign_logs_are_named(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(lines[0] + lines[1][:-30] + b"\n" + b"".join(lines[2:]))
    for command in ("show", "verify", "resume", "rerun", "rescore", "best", "compact"):
        assert call(command, str(torn)) == (1 if command == "verify" else 2)
        assert f"{torn}:2:" in one_line(capsys)


def test_verify_show_best_and_compact(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("verify", str(log)) == 0
    assert "sound" in capsys.readouterr().out
    assert call("show", str(log)) == 0
    assert "generation" in capsys.readouterr().out
    assert call("best", str(log), "-o", str(tmp_path / "best.py")) == 0
    best = evo.read_log(log).best
    assert (tmp_path / "best.py").read_text() == best.program
    assert call("compact", str(log), "-o", str(tmp_path / "small.jsonl.gz")) == 0
    assert call("rerun", str(log)) == 0
    assert "all the same" in capsys.readouterr().out


def test_a_budget_means_all_runs_together_in_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["run", "mmd"], ["grid", "mmd"], ["serve"], ["sweep", "x.toml"]):
        assert call(*command, "--budget", "512") == 2
        line = one_line(capsys)
        assert "calls=512" in line
        assert "--calls 512" in line
    with pytest.raises(ValueError, match=r"the size of each run is calls=512"):
        evo.run_grid("mmd", budget=512, log_dir=tmp_path)  # type: ignore[arg-type]
    place = ["-q", "--log-dir", str(tmp_path)]
    assert call("grid", "mmd", "--calls", "2", "--seeds", "1:3", "--budget", "calls=4", *place) == 0
    said = capsys.readouterr().out
    assert "enough for 0 of 2 generations of each run" in said
    assert "not begun" not in said
    assert sum(len(evo.read_log(path).calls) for path in tmp_path.glob("*.jsonl")) == 4


def test_show_and_verify_take_folders(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "below/b"):
        copy = tmp_path / f"{name}.jsonl"
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(log.read_bytes())
    assert call("verify", str(tmp_path)) == 0
    assert capsys.readouterr().out.count(": sound") == 2
    assert call("show", str(tmp_path)) == 0
    assert str(tmp_path / "a.jsonl") in capsys.readouterr().out
    with (tmp_path / "below" / "b.jsonl").open("ab") as file:
        file.write(b"{}\n")
    assert call("verify", str(tmp_path)) == 1


def test_show_states_why_children_failed_and_stats_counts_a_rescored_log_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "picky"
    task.mkdir()
    (task / "initial_program.py").write_text("def f():\n    return 1\n")
    score = "def score(value):\n    return {'fitness': {1: 1.0}[value]}\n"
    (task / "evaluator.py").write_text(score)
    (task / "task.toml").write_text('entry = ["f"]\n')
    log = evo.run(task, generations=1, children=6, log=tmp_path / "p.jsonl", progress=False)
    failed = [child.evaluation for child in log.children]
    assert {each.status for each in failed} >= {"error"}
    assert call("show", str(log.path)) == 0
    shown = capsys.readouterr().out
    assert "the evaluator failed: KeyError: " in shown
    first = next(child for child in log.children if child.evaluation.status == "error")
    assert call("show", str(log.path), "--child", f"1/{first.index}") == 0
    assert str(first.reply) in capsys.readouterr().out
    for wrong in ("1/6", "2/0"):
        assert call("show", str(log.path), "--child", wrong) == 2
        assert f"has no child {wrong}" in capsys.readouterr().err
    assert call("show", str(log.path), "--child", "one") == 2
    assert "expected GENERATION/INDEX, such as 3/1, got 'one'" in capsys.readouterr().err
    table = replay.children(log.path, progress=False)
    assert table["error"].dropna().tolist() == [each.error for each in failed if each.error]
    evo.rescore(log.path)
    assert call("stats", str(tmp_path)) == 0
    total = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("total"))
    assert total.split()[1] == "6"


def test_resume_extends(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(log.read_bytes())
    assert call("resume", str(copy), "-T", "3", "-q") == 0
    assert len(evo.read_log(copy).generations) == 3


def test_the_same_command_goes_on_unless_it_is_to_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("run", "mmd", "-T", "1", "-N", "1", "-q")
    for more, logs in (((), 1), ((), 1), (("--resume",), 1), (("--no-resume",), 2)):
        assert call(*command, *more) == 0
        assert len(list(tmp_path.glob("logs/local/*.jsonl"))) == logs


def test_seeds() -> None:
    assert seeds_of("40:50") == tuple(range(40, 50))
    assert seeds_of("1, 5,40:42") == (1, 5, 40, 41)
    assert instance_range("40") == 40
    assert instance_range("40:") == slice(40, None)
    assert instance_range(":60") == slice(None, 60)
    with pytest.raises(ValueError, match="expected a number such as 40"):
        instance_range("forty")


def test_best_that_cannot_be_written_is_one_line(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("best", str(log), "-o", str(tmp_path)) == 2
    assert one_line(capsys) == f"evo: {tmp_path}: Is a directory"


def test_arms_of_an_allocation_differ_as_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = ["--arm", "temperature=0.2,children=1", "--arm", "model=offline,seed=7"]
    rest = ["--rounds", "3", "-N", "2", "--in-flight", "2", "--log-dir", str(tmp_path), "-q"]
    assert call("allocate", "mmd", "--policy", "round_robin", *arms, *rest) == 0
    headers = [evo.read_log(tmp_path / f"arm-0{k}.jsonl").header for k in range(2)]
    assert [(h.children, h.seed) for h in headers] == [(1, 40), (2, 7)]
    assert headers[0].sampling.temperature == 0.2
    assert "offline" in capsys.readouterr().out


def test_journal_of_an_allocation_is_verified_and_not_taken_for_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--arms", "2", "--rounds", "3", "-N", "1", "-q", "--log-dir", str(tmp_path))
    assert call("allocate", "mmd", "--policy", "round_robin", *arguments) == 0
    assert call("verify", *map(str, sorted(tmp_path.iterdir()))) == 0
    assert f"{tmp_path / 'allocation.jsonl'}: sound, 3 rounds" in capsys.readouterr().out
    assert call("show", str(tmp_path / "allocation.jsonl")) == 2
    assert "journal of an allocation" in one_line(capsys)


def test_a_program_from_any_file_is_a_text_of_bounded_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "endless.py"
    path.symlink_to("/dev/zero")
    assert call("evaluate", "mmd", "--program", str(path)) == 2
    assert "endless.py: cannot read it: expected at most" in one_line(capsys)
    marked = tmp_path / "marked.py"
    program = evo.load_task("mmd").initial_program
    marked.write_text(program, encoding="utf-8-sig")
    assert call("evaluate", "mmd", "--program", str(marked)) == 0


def test_a_run_is_the_same_by_earlier_and_by_plain_flags(tmp_path: Path) -> None:
    headers = []
    for number, flags in enumerate(
        [
            ["--draws", "2", "--confirm=3", "--spending"],
            ["--evaluations-per-program", "2", "--confirm-draws=3", "--share-alpha"],
        ]
    ):
        path = tmp_path / f"{number}.jsonl"
        assert call("run", "cp", "-T", "1", "-N", "1", "--log", str(path), "-q", *flags) == 0
        headers.append(evo.read_log(path).header)
    assert headers[0] == headers[1]
    assert (headers[0].draws, headers[0].confirm, headers[0].spending) == (2, 3, True)


def test_output_may_be_collected_after_its_stream_is_closed():
    stream = io.StringIO()
    plain = entry._Plain(stream)
    plain.write("a\x1b[31mb")
    assert "\x1b" not in stream.getvalue()
    stream.close()
    plain.close()  # as the collector does


@pytest.mark.parametrize("flags", [["-T", "1", "-N", "2"], ["--T", "1", "--N", "2"],
                                   ["--generations", "1", "--children", "2"]])  # fmt: skip
def test_depth_and_breadth_have_three_flags_each(flags: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert call("run", "mmd", *flags, "--log", str(path), "-q") == 0
    assert len(evo.read_log(path).outcomes) == 2


FAILING = {
    "initial_program.py": "def solve():\n    raise ValueError('never')\n",
    "evaluator.py": "def score(value):\n    return {'fitness': 1.0, 'seconds': 3.0}\n",
    "task.toml": "statement = 'Return a number.'\nentry = ['solve']\n",
}


@pytest.mark.filterwarnings("ignore:.*(none of|no child|children)")
def test_runs_of_which_no_child_was_ok_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FAILING.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "initial_program.py").write_text("def solve():\n    return 1.0\n")
    refuse = (
        "def score(value):\n    if value == 1.0:\n        return 1.0\n    raise ValueError(value)\n"
    )
    (tmp_path / "evaluator.py").write_text(refuse)
    folder = tmp_path / "logs"
    run = ["run", str(tmp_path), "-T", "1", "-N", "3", "--log-dir", str(folder), "-q"]
    changed = [
        *run,
        "--filter",
        "same_program",
    ]  # of the children only those that are other programs
    assert call(*changed, "--seeds", "0:2") == 1
    assert f"no child was ok in {folder}" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*the initial program is")
def test_a_run_in_which_nothing_was_ok_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FAILING.items():
        (tmp_path / name).write_text(text)
    log = str(tmp_path / "a.jsonl")
    assert call("run", str(tmp_path), "-T", "1", "-N", "1", "--log", log, "-q") == 1
    printed = capsys.readouterr().out
    assert f"no program was ok in {log}" in printed
    assert "nan" not in printed
    assert call("resume", log, "-T", "2", "-q") == 1
    (tmp_path / "initial_program.py").write_text("def solve():\n    return 1.0\n")
    assert call("evaluate", str(tmp_path)) == 0
    rows = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == len(set(rows))


def test_a_run_that_reached_its_target_is_finished(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=50, children=4, target=0.001, log=tmp_path / "a.jsonl",
                  progress=False, workers=1)  # fmt: skip
    assert log.ends[-1].reason == "target"
    assert log.finished
    assert "unfinished" not in repr(log)


def test_the_table_of_an_unknown_model_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my models" / "models.toml"
    file.parent.mkdir()
    file.write_text('["other"]\nbase_url = "http://localhost:1/v1"\n')
    monkeypatch.setenv("EVO_MODELS", str(file))
    assert call("run", "mmd", "--model", "gpt-9.1", "-q") == 2
    line = one_line(capsys)
    assert '["gpt-9.1"] | base_url = "http://host:8000/v1" or pass' in line
    command = line.partition("append its table to ")[2].partition(": ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    assert find_model("gpt-9.1").base_url == "http://host:8000/v1"
    assert find_model("other").base_url == "http://localhost:1/v1"


def test_the_advice_on_noise_can_be_followed_and_is_given_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = "import random\n\n\ndef solve():\n    return random.random()\n"
    for name, text in {**FAILING, "initial_program.py": noisy}.items():
        (tmp_path / name).write_text(text.replace("'fitness': 1.0", "'fitness': float(value)"))
    run = ["run", str(tmp_path), "-T", "1", "-N", "1", "-q", "--log-dir", str(tmp_path / "logs")]
    code = f"import sys; from evo.cli.entry import main; sys.exit(main({[*run, '--seeds', '1:4']}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    notes = [line for line in done.stderr.splitlines() if "noisy" in line]
    assert len(notes) == 1
    advice = notes[0].partition("(--")[2].partition(")")[0].split()
    assert call(*run, "--seed", "9", f"--{advice[0]}", *advice[1:]) in (0, 1)  # of its one child
    assert "noisy" not in capsys.readouterr().err


def test_a_budget_of_a_plan_has_the_form_of_every_other(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for budget in ("calls=64", "64"):
        arguments = ["plan", str(log), "--budget", budget, "--best", "0.01"]
        assert replay_main([*arguments, "-o", str(tmp_path / "p.png")]) in (0, 2)
        assert "budget" not in capsys.readouterr().err
    assert replay_main(["plan", str(log), "--budget", "dollars=3"]) == 2
    assert "expected calls=NUMBER" in capsys.readouterr().err


def test_runs_that_ended_early_say_why_and_what_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    given = ("run", "mmd", "-T", "4", "-N", "2", "--log", str(path), "-q")
    assert call(*given, "--budget", "calls=4") == 0
    command = f"evo resume {path} --budget calls=NUMBER"
    said = f"1 of 1 run ended as the budget was used up; `{command}` goes on"
    assert said in capsys.readouterr().out.splitlines()
    assert call("resume", str(path), "-q") == 0
    assert "goes on" not in capsys.readouterr().out
    assert len(evo.read_log(path).generations) == 4


def test_what_goes_on_is_named_for_all_runs_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("run", "mmd", "-T", "4", "-N", "1", "--seeds", "1:4", "--log-dir", str(tmp_path), "-q")
    assert call(*given, "--budget", "calls=6") == 0
    *_, said = capsys.readouterr().out.splitlines()
    command = said.split("`")[1].replace("calls=NUMBER", "calls=12")
    paths = sorted(tmp_path.glob("*.jsonl"))
    assert command.split()[2:] == [*map(str, paths), "--budget", "calls=12"]
    logs = [evo.read_log(path) for path in paths]
    assert resume_command(logs * 10) == f"evo resume {tmp_path}"
    assert call(*command.split()[1:], "-q") == 0
    assert all(log.finished for log in map(evo.read_log, paths))


def test_runs_of_a_grid_that_got_unequally_far_are_rows_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = ("grid", "mmd", "--calls", "4", "--seeds", "1:3", "-q", "--log-dir", str(tmp_path))
    assert call(*grid, "--budget", "calls=7") == 0
    said = capsys.readouterr().out
    logs = [evo.read_log(path) for path in tmp_path.glob("*.jsonl")]
    splits = Counter((len(log.generations), log.header.children) for log in logs)
    heads = next(k for k, line in enumerate(said.splitlines()) if line.split()[0] == "T")
    rows = [tuple(map(int, line.split()[:3])) for line in said.splitlines()[heads + 1 :][:-1]]
    assert {row[:2]: row[2] for row in rows} == splits
    assert len({made for made, children in splits if children == 4}) == 2
    assert "ended as the budget was used up; `evo resume " in said
    assert "--budget calls=NUMBER` goes on" in said
    assert call(*grid) == 0
    assert "goes on" not in capsys.readouterr().out


def test_an_allocation_that_its_budget_ended_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = ("--policy", "ucb1", "--arms", "2", "--rounds", "6", "-N", "2", "--budget", "calls=5")
    assert call("allocate", "mmd", *arms, "-q", "--log-dir", str(tmp_path / "a")) == 0
    assert "; the budget is used up after 3 of 6 rounds; " in capsys.readouterr().out


def test_a_budget_in_seconds_is_said_to_be_that_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ("run", "mmd", "-T", "9", "-N", "1", "--log", str(tmp_path / "a.jsonl"), "-q")
    assert call(*run, "--budget", "seconds=0.001") == 0
    said = "--budget seconds=NUMBER` goes on, in seconds of its own"
    assert said in capsys.readouterr().out


def test_what_goes_on_after_a_stop_keeps_the_budget(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    limits = {"calls": 5.0, "tokens": 1e6}
    command = f"evo resume {log.path}"
    assert resume_command([log]) == command
    assert resume_command([log], limits) == f"{command} --budget calls=5 --budget tokens=1000000"
    used_up = resume_command([log], limits, used_up=True)
    assert used_up == f"{command} --budget calls=NUMBER --budget tokens=NUMBER"
    assert resume_command([log], used_up=True) == f"{command} --budget calls=NUMBER"


def test_one_configuration_leaves_nothing_to_select(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--seeds", "1:3", "-T", "1", "-q", "--log-dir", str(tmp_path / "s"))
    assert call("select", "mmd", "--vary", "children=1", *given) == 0
    said = capsys.readouterr().out
    assert "winner: " in said
    assert "0 of 2 runs" in said


def test_what_is_made_of_a_log_and_exists_is_not_said_to_go_on(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "small.jsonl.gz"
    assert call("compact", str(log), "-o", str(small)) == 0
    assert call("compact", str(log), "-o", str(small)) == 2
    assert "exists already; choose another path or remove it" in one_line(capsys)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("run mmd --log {log} --no-resume", "--no-resume"),
        ("run mmd --asynchronous --advice 1", "--asynchronous"),
        (
            "compare mmd --engines nothing --python nothing=/nowhere --budget calls=7 -N 3",
            "7 calls",
        ),
        ("run mmd --audit 1", "a folder functions evaluate_stage1"),
    ],
)
def test_a_message_names_what_its_reader_on_the_command_line_can_write(
    command: str, option: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python the same message names the argument."""
    assert call(*command.format(log=log).split()) == 2
    assert option in one_line(capsys)


def test_show_says_how_better_children_did_against_their_parents_on_fresh_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = evo.run(
        "mmd",
        generations=4,
        children=4,
        seed=1,
        confirm=3,
        log=tmp_path / "a.jsonl",
        progress=False,
    )
    assert made.confirmations
    assert call("show", str(made.path)) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for each in made.confirmations.values():
        [row] = [r for r in lines if r[:1] == [f"{each.generation}/{each.index}"]]
        assert row[1:4] == ["3", "of", "3"]
        assert float(row[5]) == pytest.approx(each.bound, rel=1e-3)
        assert (" ".join(row[7:]) == "replaced its parent") == each.accepted


def test_select_says_to_which_configuration_the_others_lost_and_how_sure_that_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--vary", "generations=1,6", "--children", "4", "--seeds", "40:60"]
    assert call("select", "mmd", *sizes, "--delta", "0.2", "-q", "--log-dir", str(tmp_path)) == 0
    table = capsys.readouterr().out
    [head] = [line for line in table.splitlines() if line.startswith("configuration")]
    assert head.split()[-5:] == ["lost", "to", "shared", "runs", "p"]
    [loser] = [line.split() for line in table.splitlines() if line.startswith("generations=1 ")]
    assert loser[-3] == "generations=6"
    assert float(loser[-1]) <= 0.2
    assert "p at any time, decisive at 0.2" in table


def test_best_writes_over_nothing_unless_it_is_told_to(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("precious = 1\n")
    assert call("best", str(log), "-o", str(mine)) == 2
    assert "exists already: name another one, or give --force" in one_line(capsys)
    assert mine.read_text() == "precious = 1\n"
    assert call("best", str(log), "-o", str(mine), "--force") == 0
    assert mine.read_text() == evo.read_log(log).best.program
    capsys.readouterr()
    assert call("best", str(log), "-o", str(mine)) == 0
    assert f"{mine} is there already, unchanged" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["initial", "reply", "child", "end"])
def test_salvage_says_whether_what_it_made_is_sound_and_all_that_is_missing(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if f'"kind":"{kind}"'.encode() in line)
    lines[at] = b"garbage\n"
    damaged, left = tmp_path / "damaged.jsonl", tmp_path / "left.jsonl"
    damaged.write_bytes(b"".join(lines))
    code = call("verify", str(damaged), "--salvage", "-o", str(left))
    told = capsys.readouterr()
    assert code == call("verify", str(left)) == (kind != "end")
    assert ("not a sound log" in told.out) == (kind != "end")
    for fault in capsys.readouterr().err.splitlines():
        assert fault.partition(": ")[2] in told.err


def test_of_several_models_calls_and_children_are_told_apart_and_no_dollars_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.jsonl")
    run = ["run", "mmd", "-T", "2", "-N", "3", "--models", "offline", "--models", "offline-2"]
    assert call(*run, "--drafts", "2", "--critic", "offline-2", "--log", path, "-q") == 0
    log = evo.read_log(path)
    capsys.readouterr()
    assert call("show", path) == 0
    shown = capsys.readouterr().out
    heads = next(line for line in shown.splitlines() if line.startswith("model "))
    assert heads.split() == [
        "model",
        "calls",
        "children",
        "of",
        "them",
        "ok",
        "failed",
        "tokens",
        "dollars",
    ]
    rows = [line.split() for line in shown.splitlines() if line.startswith("offline")]
    assert sum(int(row[1]) for row in rows) == len(log.calls)
    assert sum(int(row[2]) for row in rows) == len(log.outcomes) < len(log.calls)
    assert sum(int(row[3]) for row in rows) == log.status_counts["ok"]
    assert "unknown" not in shown
    assert call("stats", path) == 0
    for said in (shown, capsys.readouterr().out):
        assert "no dollars: offline and offline-2 are no LLMs" in said
