"""Sweeps with real runs of the offline model."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_kill import seen_by, serve_as_model

import evo
from evo.journal import LogBusyError, LogError
from evo.llm.offline.latency import Latency
from evo.llm.server import OfflineServer
from evo.sweeping.driver import summarise
from evo.sweeping.events import Event, EventLog
from evo.sweeping.plan import claim, make_plan

SPACE = {"temperature": [0.2, 0.9], "generations": [1, 2]}
COMMON = {"task": "mmd", "seeds": [1, 2], "children": 2, "progress": False}


def logged(folder: Path) -> list[int]:
    """Seeds of the children in all logs."""
    paths = sorted((folder / "runs").glob("*.jsonl"))
    return [outcome.seed for path in paths for outcome in evo.read_log(path).outcomes]


def fitnesses(folder: Path) -> dict[tuple[str, int], float | None]:
    events = EventLog(folder)
    events.refresh()
    return {run: event.data["fitness"] for run, event in events.state.completed.items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory):
    """A small sweep and what its subscriber was told."""
    told: list[str] = []
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    sweep = evo.sweep(SPACE, log_dir=folder, on_event=lambda e: told.append(e.event), **COMMON)
    return sweep, told


def test_a_sweep_makes_every_run_and_says_so(finished) -> None:
    sweep, told = finished
    summary = sweep.summary
    assert (summary.total, summary.completed, summary.failed) == (8, 8, 0)
    assert (summary.ended, summary.pending, summary.cancelled) == ("completed", 0, 0)
    logs = [evo.read_log(path) for path in sorted(sweep.folder.glob("runs/*.jsonl"))]
    assert summary.prompt_tokens == sum(
        attempt.usage["prompt_tokens"]
        for log in logs for outcome in log.outcomes for attempt in outcome.attempts
    )  # fmt: skip
    assert told[0] == "started"
    assert told[-1] == "completed"
    assert (told.count("configuration_started"), told.count("run_completed")) == (4, 8)
    assert "completed: 8 of 8 runs" in repr(sweep)


def test_configurations_that_differ_in_t_alone_share_their_logs(finished) -> None:
    sweep, _ = finished
    paths = sorted(sweep.folder.glob("runs/*.jsonl"))
    assert len(paths) == 4
    assert all(len(evo.read_log(path).generations) == 2 for path in paths)
    events = EventLog(sweep.folder)
    events.refresh()
    for (_, seed), event in events.state.completed.items():
        log = evo.read_log(sweep.folder / event.log)
        assert log.header.seed == seed
        T = events.state.configurations[event.configuration]["generations"]
        assert event.data["fitness"] == log.trajectory[T]
        assert event.data["n_calls"] == 2 * T


def test_a_run_of_a_sweep_is_the_run_that_evo_run_makes(finished, tmp_path: Path) -> None:
    sweep, _ = finished
    alone = evo.run(
        "mmd", generations=2, children=2, seed=2, temperature=0.9,
        log=tmp_path / "a.jsonl", progress=False,
    )  # fmt: skip
    mine = next(
        log
        for log in map(evo.read_log, sweep.folder.glob("runs/*-s2.jsonl"))
        if log.header.sampling.temperature == 0.9
    )
    assert mine.trajectory.tolist() == alone.trajectory.tolist()
    assert [child.reply for child in mine.children] == [child.reply for child in alone.children]


def test_going_on_with_a_finished_sweep_makes_no_call(finished) -> None:
    sweep, _ = finished
    before = {path: path.read_bytes() for path in sweep.folder.glob("runs/*.jsonl")}
    again = evo.sweep(SPACE, log_dir=sweep.folder, **COMMON)
    assert again.summary.completed == 8
    assert evo.sweep(sweep.folder, progress=False).summary.ended == "completed"
    assert before == {path: path.read_bytes() for path in sweep.folder.glob("runs/*.jsonl")}


def test_another_sweep_in_the_folder_is_a_mistake(finished) -> None:
    sweep, _ = finished
    with pytest.raises(ValueError, match="holds a sweep with seeds"):
        evo.sweep(SPACE, log_dir=sweep.folder, **{**COMMON, "seeds": [1, 2, 3]})
    with pytest.raises(TypeError, match="settings and a budget alone"):
        evo.sweep(sweep.folder, children=3)
    with pytest.raises(LogError, match="not the folder of a sweep"):
        evo.sweep(sweep.folder / "runs")


@pytest.mark.parametrize(
    ("space", "others", "says"),
    [
        ({"temperature": [3.0]}, {}, "temperature = 3.0: .*in .0, 2."),
        ({"children": [0]}, {}, "children = 0"),
        ({"model": ["offline", "gpt-nope"]}, {}, "unknown model 'gpt-nope'"),
        ({}, {"nonsense": 1}, "unknown field 'nonsense'"),
        ({}, {"seeds": [1, 1]}, "all different"),
        ({}, {"task": None}, "task: expected"),
        ({}, {"strategy": "best"}, "unknown strategy"),
        ({}, {"budget": {"money": 1}}, "expected a unit out of calls"),
        ({}, {"budget": {"calls": 0}}, "positive"),
    ],
)
def test_mistakes_are_found_before_anything_starts(space, others, says, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=says):
        evo.start_sweep(space, log_dir=tmp_path / "s", **{**COMMON, **others})
    assert not (tmp_path / "s" / "events.jsonl").exists()


def test_a_task_may_be_an_object() -> None:
    task = evo.load_task("mmd")
    given = {"strategy": "grid", "trials": None, "seeds": [1], "seed": 0, "base": {}}
    by_object = make_plan({"task": [task]}, task=task, **given)
    assert by_object.tasks == make_plan({}, task="min_max_distance", **given).tasks
    assert by_object.space == {"task": ["min_max_distance"]}


def test_equal_configurations_run_once(tmp_path: Path) -> None:
    sweep = evo.sweep(
        {"temperature": [0.2, 0.9]}, strategy="random", trials=12, generations=1,
        log_dir=tmp_path / "s", **{**COMMON, "seeds": [1]},
    )  # fmt: skip
    events = EventLog(sweep.folder)
    events.refresh()
    assert len(events.state.trials) == 12
    assert len(list(sweep.folder.glob("runs/*.jsonl"))) == 2
    assert (sweep.summary.total, sweep.summary.completed) == (2, 2)


def test_an_impossible_configuration_fails_and_the_others_go_on(tmp_path: Path) -> None:
    model = evo.Model(name="offline", context=1000, max_tokens=100)
    sweep = evo.sweep(
        {"max_tokens": {"values": [100, 2000], "when": {"children": [1, 2]}}, "children": [1, 2]},
        model=model, generations=1, log_dir=tmp_path / "s",
        **{k: v for k, v in COMMON.items() if k != "children"},
    )  # fmt: skip
    summary = sweep.summary
    assert (summary.completed, summary.failed, summary.ended) == (4, 4, "completed")
    events = EventLog(sweep.folder)
    events.refresh()
    assert all("context window" in why for why in events.state.failed.values())


@pytest.mark.slow
def test_bayesian_sweeps_go_on_as_they_would_have(tmp_path: Path) -> None:
    strategy = {"name": "bayesian", "batch": 3}
    others = {**COMMON, "seeds": [1], "strategy": strategy, "trials": 9, "generations": 1}
    space = {"temperature": {"min": 0.1, "max": 1.5}}
    whole = evo.sweep(space, log_dir=tmp_path / "whole", **others)
    cut = evo.sweep(space, log_dir=tmp_path / "cut", budget={"calls": 9}, **others)
    assert cut.summary.ended == "budget"
    assert cut.summary.completed < 9
    assert len(logged(cut.folder)) == 9
    cut.resume(budget={})
    cut.wait()
    assert fitnesses(cut.folder) == fitnesses(whole.folder)
    assert len(set(fitnesses(cut.folder))) == 9


def test_a_preset_says_how_many_trials_and_runs_go_at_once(tmp_path: Path) -> None:
    sweep = evo.sweep(
        {"temperature": {"min": 0.1, "max": 1.5}}, strategy="bayesian", trials=12, seeds=[1, 2],
        preset="conservative", log_dir=tmp_path / "s", task="mmd", generations=1, children=2,
        progress=False,
    )  # fmt: skip
    assert sweep.summary.completed == 24
    log = EventLog(sweep.folder)
    log.refresh()
    active, most = set(), 0
    for event in log.events:
        if event.event == "run_started":
            active.add((event.configuration, event.seed))
        elif event.event == "run_completed":
            active.discard((event.configuration, event.seed))
        most = max(most, len(active))
    assert 2 <= most <= 3
    kinds = [event.event for event in log.events]
    first = kinds.index("proposed")
    assert [kind == "proposed" for kind in kinds[first : first + 6]] == [True] * 5 + [False]


def test_a_budget_counts_the_calls_of_the_evaluator(tmp_path: Path) -> None:
    sweep = evo.sweep(
        {"children": [1, 2]}, task="word_problems", generations=1, seeds=[1], progress=False,
        budget={"calls": 100}, log_dir=tmp_path / "s",
    )  # fmt: skip
    logs = [evo.read_log(path) for path in sweep.folder.glob("runs/*.jsonl")]
    assert sum(len(log.calls) for log in logs) == 100
    assert sweep.summary.ended == "budget"


@pytest.mark.slow
def test_budgets_end_a_sweep_and_more_of_it_goes_on(finished, tmp_path: Path) -> None:
    told: list[str] = []
    sweep = evo.sweep(
        SPACE, log_dir=tmp_path / "s", budget={"calls": 5, "tokens": 1e9},
        on_event=lambda event: told.append(event.event), **COMMON,
    )  # fmt: skip
    assert sweep.summary.ended == "budget"
    assert told[-1] == "budget_exhausted"
    assert len(logged(sweep.folder)) == 5
    assert evo.sweep(sweep.folder, progress=False).summary.ended == "budget"
    assert len(logged(sweep.folder)) == 5
    done = evo.sweep(sweep.folder, budget={"calls": 100}, progress=False)
    assert done.summary.ended == "completed"
    assert fitnesses(done.folder) == fitnesses(finished[0].folder)


def test_one_process_at_a_time_spends_a_budget(tmp_path: Path) -> None:
    sweep = evo.sweep({}, log_dir=tmp_path / "s", **{**COMMON, "seeds": [1], "generations": 1})
    with claim(sweep.folder, alone=False):
        evo.sweep(sweep.folder, progress=False)  # any number without a budget
        with pytest.raises(LogBusyError, match="another process works on this sweep"):
            evo.sweep(sweep.folder, budget={"calls": 9}, progress=False)


def test_a_torn_last_event_is_forgiven_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.append("started")
    log.append("paused")
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + b'{"crc":"0000')
    other = EventLog(tmp_path)
    assert [event.event for event in other.refresh()] == ["started", "paused"]
    other.append("resumed")
    assert [event.event for event in log.refresh()] == ["resumed"]
    assert log.path.read_bytes().startswith(whole)
    log.path.write_bytes(whole.replace(b"paused", b"pauses"))
    with pytest.raises(LogError, match=r"events.jsonl:2"):
        EventLog(tmp_path).refresh()


def start_elsewhere(folder: Path, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "evo", "sweep", str(folder), "-q", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_lines(path: Path, lines: int) -> None:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= lines):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_pause_from_another_process_lets_calls_finish_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, folder = tmp_path / "requests.jsonl", tmp_path / "s"
    space = {"temperature": [0.2, 0.9], "generations": [40]}
    with OfflineServer(request_log=requests, latency=Latency(0.3, 0.3)) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        sweep = evo.start_sweep(space, model="served", log_dir=folder, **COMMON)
        wait_for_lines(requests, 12)
        done = subprocess.run(
            [sys.executable, "-m", "evo", "pause", str(folder)], capture_output=True, text=True
        )
        assert done.returncode == 0
        assert sweep.wait(60).ended == "paused"
        asked = seen_by(requests)
        assert sorted(asked) == sorted(logged(folder))
        assert sweep.summary.pending == 4
        sweep.resume()
        wait_for_lines(requests, len(asked) + 4)
        sweep.pause()
        sweep.wait(60)
        assert sorted(seen_by(requests)) == sorted(logged(folder))


def test_a_stop_cancels_the_rest(tmp_path: Path) -> None:
    space = {"temperature": [0.2, 0.9], "generations": [400]}
    sweep = evo.start_sweep(space, log_dir=tmp_path / "s", **COMMON)
    wait_for_lines(sweep.folder / "events.jsonl", 6)
    sweep.stop()
    summary = sweep.wait(60)
    assert (summary.ended, summary.cancelled, summary.pending) == ("stopped", 4, 0)
    assert all(not evo.verify(path).faults for path in sweep.folder.glob("runs/*.jsonl"))


def test_a_wish_made_at_once_counts(tmp_path: Path) -> None:
    sweep = evo.start_sweep({"generations": [400]}, log_dir=tmp_path / "s", **COMMON)
    sweep.pause()
    assert sweep.wait(60).ended == "paused"


@pytest.mark.slow
def test_two_processes_share_a_folder_and_no_run_is_made_twice(
    finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, folder = tmp_path / "requests.jsonl", tmp_path / "s"
    with OfflineServer(request_log=requests, latency=Latency(0.02, 0.5)) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        sweep = evo.start_sweep(
            {"temperature": [0.2, 0.5, 0.9], "generations": [4]}, model="served",
            log_dir=folder, max_concurrent=4, **COMMON,
        )  # fmt: skip
        with start_elsewhere(folder, "--max-concurrent", "4") as other:
            summary = sweep.wait(120)
            output, errors = other.communicate(timeout=60)
    assert other.returncode == 0, errors
    assert summary.completed == 6
    assert "6 of 6 runs completed" in output
    asked = seen_by(requests)
    assert len(asked) == 6 * 4 * 2 == len(logged(folder))
    assert sorted(asked) == sorted(logged(folder))


def test_an_endpoint_that_is_down_ends_the_sweep_resumably(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer() as server:
        serve_as_model(server, tmp_path, monkeypatch)
    with pytest.raises(evo.llm.client.EndpointDown):
        evo.sweep(
            {"temperature": [0.2, 0.9]}, model="served", generations=1, retries=0,
            log_dir=tmp_path / "s", **COMMON,
        )  # fmt: skip
    summary = summarise(tmp_path / "s")
    assert (summary.ended, summary.failed, summary.pending) == ("interrupted", 0, 4)


@pytest.mark.slow
def test_the_command_reads_a_file_and_its_folder_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(
        'task = "mmd"\nseeds = "1:3"\n[base]\ngenerations = 1\n[budget]\ncalls = 3\n'
        "[space]\nsampling.temperature = [0.2, 0.9]\nchildren = {min = 1, max = 2}\n"
    )
    folder = tmp_path / "s"
    run = lambda *words: subprocess.run(  # noqa: E731
        [sys.executable, "-m", "evo", *words], capture_output=True, text=True
    )
    first = run("sweep", str(file), "--log-dir", str(folder), "-q")
    assert first.returncode == 0, first.stderr
    assert "budget: " in first.stdout
    again = run("sweep", str(file), "--log-dir", str(folder), "--budget", "calls=50", "-q")
    assert "completed: 8 of 8 runs completed" in again.stdout
    assert "sampling.temperature=0.2" in again.stdout
    assert run("resume", str(folder), "-q").returncode == 0
    assert "not the folder of a sweep" in run("pause", str(tmp_path)).stderr
    file.write_text("task = 'mmd'\nspaces = {}\n")
    assert "unknown key 'spaces' (known: task, space" in run("sweep", str(file)).stderr


@pytest.fixture
def interruptible():
    """Ctrl-C works, also where the tests themselves run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_pauses(tmp_path: Path) -> None:
    def interrupt(event: Event) -> None:
        if event.event == "run_started":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        evo.sweep(
            {"generations": [5000]}, log_dir=tmp_path / "s", on_event=interrupt,
            **{**COMMON, "seeds": [1]},
        )  # fmt: skip
    assert summarise(tmp_path / "s").ended == "paused"
    assert summarise(tmp_path / "s").pending == 1
