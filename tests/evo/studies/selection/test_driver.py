"""Live selections: samples are runs, problems of a data set, or rows for an agent of one's own."""

import json
import re
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
import replay
from evo.cli.entry import main
from evo.logs.journal import LogBusyError
from evo.models.client import Call, EndpointRefused, ModelClient
from evo.studies.selection.race import Selection

COMMON: dict[str, Any] = {"task": "mmd", "generations": 1, "children": 1, "progress": False}
PAIR = [{"children": 1}, {"children": 2, "generations": 2}, {"children": 2}]
FOUR = {**COMMON, "seeds": range(40, 44)}
TEXTS = [
    "Answer the question.",
    "Think step by step, keep the units, and end with a line 'Answer: <number>'.",
    "Think step by step.",
]
WP = evo.load_task("word_problems", instances=24)
PROBLEMS: dict[str, Any] = {"task": WP, "samples": "problems", "batch": 4, "progress": False}
CHOICES = [{"text": text} for text in TEXTS]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    return evo.select_best(PAIR, **FOUR, log_dir=tmp_path_factory.mktemp("selection"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    folder = tmp_path_factory.mktemp("samples")
    return evo.select_best(CHOICES, **PROBLEMS, selector="brute_force", log_dir=folder)


def calls_in(folder: Path) -> int:
    return sum(len(evo.read_log(path).calls) for path in folder.glob("*.jsonl"))


def test_samples_are_the_runs_of_paired_seeds(found: Selection) -> None:
    assert found.end == "exhausted"
    assert found.labels[1] == "generations=2, children=2"
    for k, logs in enumerate(found.logs):
        assert [log.header.seed for log in logs] == [40, 41, 42, 43]
        assert found.outcomes[k].tolist() == [log.trajectory[1 + (k == 1)] for log in logs]
    # Configurations that differ in generations alone share their logs, which are paid once.
    assert [log.path for log in found.logs[1]] == [log.path for log in found.logs[2]]
    assert found.spent["calls"].sum() == calls_in(found.path) == 20
    assert found.winner == int(np.nanargmax(found.mean))
    assert found.frame().iloc[0]["configuration"] == found.labels[found.winner]


def test_going_on_repeats_no_call_and_live_equals_post_hoc(found: Selection) -> None:
    before = {path: path.read_bytes() for path in found.path.iterdir()}
    again = evo.select_best(PAIR, **FOUR, log_dir=found.path)
    assert {path: path.read_bytes() for path in found.path.iterdir()} == before
    assert again.outcomes.tolist() == found.outcomes.tolist()
    assert repr(again) == repr(found)
    with pytest.raises(ValueError, match=r"a selection with delta 0\.05, not 0\.1"):
        evo.select_best(PAIR, **FOUR, log_dir=found.path, delta=0.1)
    played = replay.select(found.outcomes)
    assert (played.winner, played.survivors) == (found.winner, found.survivors)
    assert played.samples.tolist() == found.samples.tolist()
    assert played.lower.tolist() == found.lower.tolist()


@pytest.mark.parametrize("name", sorted({*evo.SELECTORS} - {"threshold"}))
def test_a_lone_choice_wins_without_a_sample(name: str, tmp_path: Path) -> None:
    made = evo.select_best([{"children": 2}], **FOUR, selector=name, log_dir=tmp_path / "s")
    assert (made.winner, made.survivors, made.end) == (0, (0,), "certain")
    assert made.samples.tolist() == [0]
    assert not [*(tmp_path / "s").glob("*.jsonl")]


def test_a_lone_choice_is_still_held_against_a_threshold(tmp_path: Path) -> None:
    given = {**FOUR, "selector": "threshold", "log_dir": tmp_path / "s"}
    made = evo.select_best([{"children": 2}], parameters={"threshold": 0.0}, **given)
    assert made.samples.sum() > 0


def test_a_selection_stops_and_is_one_sessions_at_a_time(tmp_path: Path) -> None:
    busy, asked = threading.Event(), threading.Event()

    def agent(row: int, *, skill: float) -> float:
        busy.set()
        asked.wait(30)
        return skill

    given: dict[str, Any] = {
        "evaluate": agent, "data": list(range(40)), "log_dir": tmp_path / "s", "max_concurrent": 1,
        "selector": "brute_force", "progress": False,
    }  # fmt: skip
    handle = evo.start_selection({"skill": [0.2, 0.8]}, **given)
    assert busy.wait(30)
    with pytest.raises(LogBusyError):
        evo.select_best({"skill": [0.2, 0.8]}, **given)
    assert main(["stop", str(tmp_path / "s")]) == 0
    while not handle._control.stopping.is_set():
        time.sleep(0.05)
    asked.set()
    assert handle.wait(60).end == "stopped"
    assert evo.select_best({"skill": [0.2, 0.8]}, **given).samples.tolist() == [40, 40]


def test_a_killed_selection_goes_on(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {**COMMON, "seeds": [7, 8], "selector": "random_search"}
    whole = evo.select_best(PAIR, **arguments, log_dir=tmp_path / "whole")
    part = tmp_path / "part"
    part.mkdir()
    for path in sorted(whole.path.iterdir())[1:]:
        data = path.read_bytes()
        (part / path.name).write_bytes(data if path.suffix == ".json" else data[:-30])
    again = evo.select_best(PAIR, **arguments, log_dir=part)
    assert again.outcomes.tolist() == whole.outcomes.tolist()
    assert again.samples.tolist() == whole.samples.tolist()


def test_a_budget_ends_it_alike_whatever_goes_on_at_once(tmp_path: Path) -> None:
    choices = [{"children": 2}, {"children": 3}]
    given = {**FOUR, "selector": "brute_force", "budget": {"calls": 12}}
    made = [
        evo.select_best(choices, **given, max_concurrent=n, log_dir=tmp_path / str(n))
        for n in (1, 20)
    ]
    assert repr(made[0]) == repr(made[1])
    assert made[0].end == "budget"
    assert made[0].samples.tolist() == [3, 2]  # 2, 3, 2, 3 and 2 calls
    assert [calls_in(each.path) for each in made] == [12, 12]
    more = {**given, "budget": {"calls": 15}}  # a goal, not identity
    assert evo.select_best(choices, **more, log_dir=tmp_path / "20").samples.tolist() == [3, 3]
    stopped = evo.start_selection(choices, **FOUR, log_dir=tmp_path / "stopped")
    stopped.stop()
    assert stopped.wait(60).end in ("stopped", "exhausted")


def test_folders_of_earlier_versions_go_on_and_repeat_no_call(tmp_path: Path) -> None:
    """Made by the version before the one session: a sweep cut by a budget, a whole selection."""
    with tarfile.open(Path(__file__).parent / "data" / "folders_of_schema_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    logs = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert replay.load_sweep(tmp_path / "sweep")["done"].tolist() == [1, 1]
    sweep = evo.sweep(tmp_path / "sweep", budget={"calls": 100}, progress=False)
    assert (sweep.summary.ended, sweep.summary.completed) == ("completed", 2)
    given = {**COMMON, "seeds": [1, 2], "log_dir": tmp_path / "selection"}
    assert evo.select_best(PAIR[::2], **given).spent["calls"].tolist() == [2, 4]
    assert all(path.read_bytes().startswith(before) for path, before in logs.items())
    assert set(tmp_path.rglob("*.jsonl")) == {*logs}


def order_of(found: Selection) -> list[int]:
    order: list[int] = json.loads((found.path / "selection.json").read_text())["problems"]
    assert sorted(order) == list(range(24))
    return order


def test_a_sample_may_be_the_score_on_a_problem(asked: Selection, tmp_path: Path) -> None:
    assert asked.samples.tolist() == asked.spent["calls"].tolist() == [24, 24, 24]
    whole = [evo.evaluate(WP, text) for text in TEXTS]
    scores = np.array([[each.score for each in of.instances] for of in whole])
    matrix = scores[:, order_of(asked)]
    np.testing.assert_array_equal(asked.outcomes, matrix)
    for (log,), alone, mean in zip(asked.logs, whole, asked.mean, strict=True):
        assert log.initial.evaluation.fitness == alone.fitness == pytest.approx(mean)
    assert asked.winner == int(np.argmax(asked.mean))
    assert asked.labels[0] == "text=Answer the question."
    live = evo.select_best(CHOICES, **PROBLEMS, log_dir=tmp_path / "s")
    again = replay.select(matrix, batch=4)
    assert (again.winner, again.samples.tolist()) == (live.winner, live.samples.tolist())
    assert again.lower.tolist() == live.lower.tolist()


def test_going_on_asks_no_problem_again(asked: Selection, tmp_path: Path) -> None:
    lines = {path: path.read_bytes().splitlines() for path in asked.path.glob("*.jsonl")}
    again = evo.select_best(CHOICES, **PROBLEMS, selector="brute_force", log_dir=asked.path)
    assert repr(again) == repr(asked)
    for path, before in lines.items():
        added = path.read_bytes().splitlines()[len(before) :]
        assert [re.search(rb'"kind":"(\w+)"', line)[1] for line in added] == [b"session", b"end"]
    # A log cut anywhere is gone on with from there.
    part = tmp_path / "part"
    part.mkdir()
    for path, whole in lines.items():
        (part / path.name).write_bytes(b"\n".join(whole[:10]) + b"\n" + whole[10][:40])
    (part / "selection.json").write_bytes((asked.path / "selection.json").read_bytes())
    mended = evo.select_best(CHOICES, **PROBLEMS, selector="brute_force", log_dir=part)
    assert repr(mended) == repr(asked)
    for path in lines:
        calls = evo.read_log(part / path.name).instance_calls
        assert len({(call.program, call.index) for call in calls}) == len(calls) == 24


def test_the_log_of_a_text_goes_on_as_a_run_and_gives_its_best(
    asked: Selection, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(asked.logs[1][0].path.read_bytes())
    run = evo.resume(path, generations=3, progress=False)
    assert len([call for call in run.instance_calls if call.generation == 0]) == 24
    grid = {"text": [TEXTS[0], asked.logs[1][0]], "temperature": [0.2, 0.9]}
    for budget in ({"samples": 16}, {"calls": 16}):
        folder = tmp_path / next(iter(budget))
        live = evo.select_best(grid, **PROBLEMS, log_dir=folder, budget=budget)
        assert (live.end, live.samples.tolist()) == ("budget", [4, 4, 4, 4])
        assert [each.get("text") for each in live.configurations].count(TEXTS[1]) == 2
    small = evo.compact(path, tmp_path / "small.jsonl")
    with pytest.raises(ValueError, match="a compact log holds no text"):
        evo.select_best([{"text": small}, CHOICES[0]], **PROBLEMS, log_dir=tmp_path / "s")


@pytest.mark.parametrize(("wish", "message"), [("pause", "paused"), ("stop", None)])
def test_the_logs_of_texts_say_what_was_asked_for(
    tmp_path: Path, wish: str, message: str | None
) -> None:
    asked = threading.Event()

    def model(prompt: str) -> str:
        asked.set()
        time.sleep(0.05)
        return "Answer: 7"

    handle = evo.start_selection(
        CHOICES, **PROBLEMS, model=model, selector="brute_force", log_dir=tmp_path
    )
    assert asked.wait(60)
    getattr(handle, wish)()
    handle.wait()
    ends = [evo.read_log(path).ends[-1] for path in tmp_path.glob("*.jsonl")]
    assert {(end.reason, end.message) for end in ends} == {("interrupted", message)}


def test_an_endpoint_that_refuses_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused, answered = Call((), None, rejected="the endpoint refuses it"), ModelClient.call

    def call(self: ModelClient, messages: Any, **how: Any) -> Call:
        made = answered(self, messages, **how)
        return refused if messages[0]["content"] == TEXTS[0] else made

    monkeypatch.setattr(ModelClient, "call", call)
    with pytest.raises(EndpointRefused, match="no instance got a reply"):
        evo.select_best(CHOICES, **PROBLEMS, log_dir=tmp_path / "s")
    monkeypatch.undo()
    again = evo.select_best(CHOICES, **PROBLEMS, log_dir=tmp_path / "s")
    whole = evo.select_best(CHOICES, **PROBLEMS, log_dir=tmp_path / "w")
    assert again.outcomes.tolist() == whole.outcomes.tolist()
    assert again.failures.sum() == 0


def test_a_preset_says_the_batch_once(tmp_path: Path) -> None:
    plain = {name: value for name, value in PROBLEMS.items() if name != "batch"}
    for preset in ("aggressive", "conservative"):
        made = evo.select_best(CHOICES, **plain, preset=preset, log_dir=tmp_path / "s")
        assert made.terms.batch == 30


def test_who_leads_when_the_budget_ends_is_no_winner_and_every_call_is_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "select mmd --vary children=1,4 -T 3 --seeds 0:6 -q --budget calls=NUMBER --log-dir"
    for limit, decided in ((40, False), (90, True)):
        folder = tmp_path / str(limit)
        assert main([*command.replace("NUMBER", str(limit)).split(), str(folder)]) == 0
        said = capsys.readouterr().out
        assert ("leads, not decided (budget" in said) != decided
        assert ("winner: " in said) == decided
        rows = [line.split() for line in said.splitlines() if line.startswith("children=")]
        stated = sum(int(row[7]) for row in rows if row[1] in ("yes", "no"))
        if more := re.search(r"(\d+) calls? more went into 1 run", said):
            stated += int(more[1])
        assert (more is None) == decided
        assert stated == sum(len(evo.read_log(path).calls) for path in folder.glob("*.jsonl"))


def test_command(asked: Selection, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"select mmd --vary children=1,2 -T 1 --seeds 3:5 -q --log-dir {tmp_path / 'a'}"
    assert main(command.split()) == 0
    said = capsys.readouterr().out
    assert said.startswith("4 runs, at most 6 calls")
    assert "winner: children=" in said
    assert ", by its mean alone, as 2 are left after all runs (exhausted, " in said
    assert (asked.by_mean, ", by its mean alone (" in repr(asked)) == (
        len(asked.survivors) > 1,
    ) * 2
    assert "4 of 4 runs" in said
    (text := tmp_path / "steps.txt").write_text(TEXTS[1])
    given = ["--text", str(text), "--text", str(asked.logs[0][0].path), "--problems", "-q"]
    common = ["select", "wp", "--instances", "24", "--log-dir", str(tmp_path / "s")]
    assert main([*common, *given, "--selector", "brute_force"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 runs, at most 48 calls")
    assert "48 of 48 problems" in said
    for wrong, why in (
        (["select", "mmd", "--vary", "children", "-q"], "--vary: expected each field once"),
        ([*common, "--text", str(text)], "texts need --problems"),
        ([*common, "--problems", "--text", str(tmp_path / "none.txt")], "cannot read it"),
        (common, "expected --vary"),
    ):
        assert main(wrong) == 2
        assert why in capsys.readouterr().err


@pytest.mark.parametrize("selector", ["brute_force", "successive_halving"])
def test_a_run_that_a_target_or_the_patience_ends_is_a_sample_as_any(
    selector: str, tmp_path: Path
) -> None:
    ends: list[dict[str, Any]] = [
        {"patience": 2}, {"target": 0.3}, {"patience": 1}, {}, {"generations": 2}
    ]  # fmt: skip
    given: dict[str, Any] = {"task": "mmd", "generations": 6, "children": 1, "progress": False}
    made = evo.select_best(
        ends, seeds=range(40, 42), selector=selector, log_dir=tmp_path / "s", **given
    )
    before = {path: path.read_bytes() for path in made.path.iterdir()}
    for k, goal in enumerate(ends):
        for i in range(int(made.samples[k])):
            log = tmp_path / f"{k}-{i}"
            run = evo.run(seed=40 + i, log=log, **{**given, **goal})
            assert made.outcomes[k, i] == run.trajectory[-1]
    assert len({log.path for logs in made.logs for log in logs}) == max(made.samples)
    assert made.spent["calls"].sum() == calls_in(made.path)
    again = evo.select_best(
        ends, seeds=range(40, 42), selector=selector, log_dir=tmp_path / "s", **given
    )
    assert {path: path.read_bytes() for path in made.path.iterdir()} == before
    assert repr(again) == repr(made)


def test_target_and_patience_hold_for_all_choices_and_not_where_nothing_evolves(
    tmp_path: Path,
) -> None:
    made = evo.select_best(
        PAIR[::2], **{**FOUR, "generations": 5}, patience=1, log_dir=tmp_path / "s"
    )
    for logs in made.logs:
        for log in logs:
            assert len(log.generations) == 5 or log.ends[-1].reason == "patience"
    for name, value in (("target", 0.5), ("patience", 2)):
        with pytest.raises(ValueError, match=f"{name}: nothing evolves where samples are problems"):
            evo.select_best(CHOICES, **PROBLEMS, log_dir=tmp_path / "p", **{name: value})
        with pytest.raises(TypeError, match=f"{name}: evaluate and data take choices alone"):
            evo.select_best([{}], evaluate=len, data=[1], **{name: value})
    command = ["select", "mmd", "--vary", "children=1,2", "--seeds", "40:42", "-T", "4", "-q"]
    assert main([*command, "--target", "0.0", "--log-dir", str(tmp_path / "c")]) == 0
    assert calls_in(tmp_path / "c") == 0


@pytest.mark.parametrize(
    ("slots", "batch", "choices"), [(20, 5, 8), (20, 100, 2), (20, 1, 40), (10, 10, 3)]
)
def test_rows_of_a_configuration_run_at_once_and_then_as_many_configurations_as_fit(
    slots: int, batch: int, choices: int, tmp_path: Path
) -> None:
    """All calls in flight wait for one another, so that what is in flight together is seen."""
    together: list[tuple[int, int]] = []
    seen: list[list[tuple[int, int]]] = [[]]
    lock, plan = threading.Lock(), evo.plan_concurrency(slots, batch)

    def leave() -> None:
        calls = seen.pop()
        rows = {k: sum(each == k for each, _ in calls) for k, _ in calls}
        together.extend((len(rows), count) for count in set(rows.values()))
        seen.append([])

    barrier = threading.Barrier(plan.arms * plan.children, action=leave)

    def agent(row: int, k: int) -> float:
        with lock:
            seen[0].append((k, row))
        barrier.wait(30)
        return 0.5

    made = evo.select_best(
        {"k": list(range(choices))}, evaluate=agent, data=list(range(batch)), batch=batch,
        selector="brute_force", log_dir=tmp_path / "s", progress=False,
        **({} if slots == 20 else {"max_concurrent": slots}),
    )  # fmt: skip
    assert set(together) == {tuple(plan)}
    assert int(made.samples.sum()) == choices * batch
    assert len(together) == choices * batch // (plan.arms * plan.children)
