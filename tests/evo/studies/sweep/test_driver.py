"""Sweeps with real runs of the offline model."""

import functools
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from killing import seen_by, serve_as_model
from sweep_spaces import ENDS, SHORT
from tiers import thorough_after

import evo
import replay
from evo.cli.entry import main
from evo.gate.server import Latency, OfflineServer
from evo.logs.cost import Cost
from evo.logs.journal import LogBusyError, LogError
from evo.policies import POLICIES
from evo.studies.sweep.design import make_design
from evo.studies.sweep.events import EventLog, SweepEvent
from evo.studies.sweep.fields import known_fields
from evo.studies.sweep.summary import cost_of_log, standings, summarise

SPACE = {"temperature": [0.2, 0.9], "generations": [1, 2]}
COMMON: dict[str, Any] = {"task": "mmd", "seeds": [1, 2], "children": 2, "progress": False}
ONE = {**COMMON, "seeds": [1]}


def logged(folder: Path) -> list[int]:
    """Seeds of the children in all logs."""
    paths = sorted((folder / "runs").glob("*.jsonl"))
    return [outcome.seed for path in paths for outcome in evo.read_log(path).outcomes]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[evo.Sweep, list[str]]:
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
    assert (told[0], told[-1]) == ("started", "completed")
    assert (told.count("run_started"), told.count("run_completed")) == (8, 8)
    assert "completed: 8 of 8 runs" in repr(sweep)


def test_configurations_that_differ_in_t_alone_share_their_logs(finished) -> None:
    sweep, _ = finished
    paths = sorted(sweep.folder.glob("runs/*.jsonl"))
    assert [len(evo.read_log(path).generations) for path in paths] == [2] * 4
    state = EventLog(sweep.folder).state
    for (_, seed), event in state.completed.items():
        log = evo.read_log(sweep.folder / event.log)
        assert log.header.seed == seed
        T = state.configurations[event.configuration]["generations"]
        assert event.data["fitness"] == log.trajectory[T]
        assert event.data["n_calls"] == 2 * T


def test_a_run_of_a_sweep_is_the_run_that_evo_run_makes(finished, tmp_path: Path) -> None:
    sweep, _ = finished
    alone = evo.run(
        "mmd", generations=2, children=2, seed=2, temperature=0.9,
        log=tmp_path / "a.jsonl", progress=False,
    )  # fmt: skip
    logs = map(evo.read_log, sweep.folder.glob("runs/*-s2.jsonl"))
    mine = next(log for log in logs if log.header.sampling.temperature == 0.9)
    assert mine.trajectory.tolist() == alone.trajectory.tolist()
    assert [child.reply for child in mine.children] == [child.reply for child in alone.children]


@pytest.mark.thorough
def test_a_grid_is_extended_by_further_values_and_seeds(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    small: dict[str, Any] = {"children": [2], "temperature": [0.4]}
    large: dict[str, Any] = {"children": [1, 2], "temperature": [0.4, 0.9]}
    evo.sweep(small, log_dir=folder, **ONE)
    before = {path: path.read_bytes() for path in folder.glob("runs/*.jsonl")}
    for space, seeds in (({"children": [1], "temperature": [0.4]}, [1]), (small, [2])):
        with pytest.raises(ValueError, match=r"holds a sweep with .*; a grid takes further values"):
            evo.sweep(space, log_dir=folder, **{**COMMON, "seeds": seeds})
    for more in ({"strategy": "random"}, {"base": {"generations": 3}}):
        with pytest.raises(ValueError, match=r"holds a sweep with (?!.*a grid takes)"):
            evo.sweep(large, log_dir=folder, **{**ONE, **more})
    with pytest.raises(TypeError, match=r"got seeds; a grid is given further ones .*log_dir="):
        evo.sweep(folder, seeds=[1, 2])
    made = evo.sweep(large, log_dir=folder, **{**COMMON, "seeds": [1, 2]})
    assert (made.completed_runs, made.failed_runs) == (8, 0)
    assert (
        before.items() <= {path: path.read_bytes() for path in folder.glob("runs/*.jsonl")}.items()
    )
    with pytest.raises(ValueError, match="holds a sweep with"):
        evo.sweep(small, log_dir=folder, **ONE)  # it would have fewer
    whole = evo.sweep(large, log_dir=tmp_path / "w", **{**COMMON, "seeds": [1, 2]})
    columns = ["children", "temperature", "seed", "fitness"]
    one, other = (
        replay.load_sweep(each)[columns].sort_values(columns[:3], ignore_index=True)
        for each in (made, whole)
    )
    assert one.equals(other)
    assert evo.sweep(folder, progress=False).summary.ended == "completed"


def test_without_a_folder_a_larger_grid_is_another_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = evo.sweep({"children": [1]}, **ONE)
    assert evo.sweep({"children": [1, 2]}, **ONE).folder != one.folder
    assert evo.sweep({"children": [1]}, **ONE).folder == one.folder


def test_the_same_call_goes_on_and_another_is_a_mistake(finished) -> None:
    sweep, _ = finished
    before = {path: path.read_bytes() for path in sweep.folder.glob("runs/*.jsonl")}
    assert evo.sweep(SPACE, log_dir=sweep.folder, **COMMON).summary.completed == 8
    assert evo.sweep(sweep.folder, progress=False).summary.ended == "completed"
    assert before == {path: path.read_bytes() for path in sweep.folder.glob("runs/*.jsonl")}
    with pytest.raises(ValueError, match="holds a sweep with seeds"):
        evo.sweep(SPACE, log_dir=sweep.folder, **{**COMMON, "seeds": [2, 3]})
    for more in ({"children": 3}, {"seeds": [1]}, {"strategy": "random"}):
        with pytest.raises(TypeError, match=f"trials alone, got {next(iter(more))}"):
            evo.sweep(sweep.folder, **more)
    with pytest.raises(LogError, match="not the folder of a sweep"):
        evo.sweep(sweep.folder / "runs")
    with pytest.raises(LogError, match=r"expected the folder of a sweep, or a file that ends in"):
        evo.sweep(next(sweep.folder.glob("runs/*.jsonl")))


def test_one_that_cannot_go_on_says_so_before_any_call(tmp_path: Path) -> None:
    drawn = {"strategy": "random", "trials": 1}
    space = {"generations": [1, 2]}
    sweep = evo.sweep(space, log_dir=tmp_path / "s", **drawn, **ONE)
    events = EventLog(sweep.folder)
    with events.claimed():
        events.append("proposed", trial=1, configuration="0" * 12, values={"generations": 2})
    whole = events.path.read_bytes()
    with pytest.raises(ValueError, match="has tried 2 already"):
        evo.start_sweep(sweep.folder, progress=False)
    with pytest.raises(ValueError, match=r"cannot go on: .* was configuration 000000000000"):
        evo.start_sweep(sweep.folder, trials=2, progress=False)
    assert events.path.read_bytes() == whole


def test_what_a_call_is_told_and_how_a_run_searches_are_fields(tmp_path: Path) -> None:
    told = {
        "statement": ["Spread the points.", None], "feedback": [False, True],
        "inspirations": [0, 2], "draws": [1, 2], "search": ["greedy", "best_of_n"],
    }  # fmt: skip
    assert {*told, "confirm"} <= {*known_fields()}
    headers = set()
    for name, values in told.items():
        design = make_design({name: values}, task="mmd", base={})
        one, other = design.tried_values()[1:]
        assert one.id != other.id
        headers |= {one.id, other.id}
    assert len(headers) == 1 + len(told)  # one of each is what it is where nothing says otherwise
    swept = evo.sweep({"feedback": [False, True]}, generations=1, log_dir=tmp_path / "s", **ONE)
    logs = [evo.read_log(path) for path in swept.folder.glob("runs/*.jsonl")]
    assert sorted(log.header.feedback for log in logs) == [False, True]


def test_a_configuration_with_runs_to_come_does_not_lead(tmp_path: Path) -> None:
    """One of five seeds at .99 is behind five of five at .98, and a run without fitness counts."""
    make = {"task": "mmd", "trials": None, "seeds": "0:5", "seed": 0, "base": {}}
    design = make_design({"children": [1, 2, 3, 4, 5]}, strategy="grid", **make)
    (tmp_path / "sweep.json").write_bytes(msgspec.json.encode(design))
    events = EventLog(tmp_path)
    told = {"a": [0.99], "b": [0.98] * 5, "c": [0.99, 0.99, 0.99, 0.99, None], "d": [0.97] * 5}
    told["e"] = [0.5, 1.0, 1.0, 1.0, 1.35]  # on average as good as d, and better in the middle
    with events.claimed():
        for trial, (name, fits) in enumerate(told.items()):
            values = {"children": trial + 1}
            events.append("proposed", trial=trial, configuration=name, values=values)
            for seed, fitness in enumerate(fits):
                data = {"fitness": fitness}
                events.append("run_completed", configuration=name, seed=seed, data=data)
    assert [name for name, *_ in standings(tmp_path)] == ["b", "e", "d", "c", "a"]


def test_a_preset_says_how_many_trials_go_at_once(tmp_path: Path) -> None:
    sweep = evo.sweep(
        {"temperature": {"min": 0.1, "max": 1.5}}, strategy="bayesian", trials=8,
        preset="conservative", log_dir=tmp_path / "s", generations=1, **ONE,
    )  # fmt: skip
    assert sweep.summary.completed == 8
    kinds = [event.event for event in EventLog(sweep.folder).events]
    first = kinds.index("proposed")
    assert [kind == "proposed" for kind in kinds[first : first + 6]] == [True] * 5 + [False]


@pytest.mark.parametrize("budget", [{"calls": 6}, {"tokens": 1.0}])
def test_runs_under_a_budget_get_equally_far_whatever_goes_on_at_once(
    budget: dict[str, float], tmp_path: Path
) -> None:
    space, common = {"temperature": [0.2, 0.5, 0.9]}, {**COMMON, "generations": 2}
    found = []
    for slots in (1, 20):
        folder = tmp_path / str(slots)
        sweep = evo.sweep(space, log_dir=folder, budget=budget, max_concurrent=slots, **common)
        assert sweep.summary.ended == "budget"
        logs = [evo.read_log(path) for path in sorted(folder.glob("runs/*.jsonl"))]
        found.append({log.path.name: len(log.generations) for log in logs})
        assert len(logs) == 6
        assert max(found[-1].values()) - min(found[-1].values()) <= 1
        unit, limit = next(iter(budget.items()))
        spent = sum((cost_of_log(log) for log in logs), Cost())
        largest = max(cost_of_log(log).by_unit(0)[unit] for log in logs)
        assert limit <= spent.by_unit(0)[unit] < limit + largest
    assert found[0] == found[1]
    more = evo.sweep(tmp_path / "20", budget={"calls": 100}, progress=False)
    assert (more.summary.ended, more.summary.completed) == ("completed", 6)


def test_generation_0_and_what_earlier_sessions_spent_count(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "task": evo.load_task("word_problems", instances=8), "generations": 1, "seeds": [1],
        "progress": False, "log_dir": tmp_path / "s",
    }  # fmt: skip
    for limit in (8, 16):
        sweep = evo.sweep({"children": [1, 2]}, budget={"calls": limit}, **given)
        logs = [evo.read_log(path) for path in sweep.folder.glob("runs/*.jsonl")]
        assert sweep.summary.ended == "budget"
        assert sum(len(log.calls) for log in logs) in ([8] if limit == 8 else range(16, 32))
    assert evo.sweep(sweep.folder, progress=False).summary.ended == "budget"


def test_one_process_at_a_time_works_on_a_sweep(tmp_path: Path) -> None:
    sweep = evo.sweep({}, log_dir=tmp_path / "s", generations=1, **ONE)
    before = (sweep.folder / "events.jsonl").read_bytes()
    events = EventLog(sweep.folder)
    with events.claimed(), pytest.raises(LogBusyError, match="another process is writing this"):
        evo.sweep(sweep.folder, progress=False)
    assert (sweep.folder / "events.jsonl").read_bytes() == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning")
def test_policies_are_swept_over_the_same_arms(tmp_path: Path) -> None:
    space = {"policy": ["round_robin", {"name": "ucb1", "c": 0.1}], "rounds": [3, 4]}
    given: dict[str, Any] = {**COMMON, "arms": 2, "log_dir": tmp_path / "s"}
    for limit in (10, 100):  # 3 or 4 rounds of 2 calls: cut in the midst, then gone on with
        sweep = evo.sweep(space, budget={"calls": limit}, **given)
        arms = sorted(sweep.folder.rglob("arm-*.jsonl"))
        made = sum(len(evo.read_log(path).outcomes) for path in arms)
        assert (sweep.summary.ended, made) == (("budget", 10) if limit == 10 else ("completed", 56))
    frame = replay.load_sweep(sweep)
    assert frame["status"].eq("completed").all()
    assert sorted(frame["policy"].unique()) == ["round_robin", "ucb1 c=0.1"]
    assert frame["n_calls"].tolist() == (2.0 * frame["rounds"]).tolist()
    assert frame["generations"].tolist() == frame["rounds"].tolist()
    row = frame[(frame["policy"] == "ucb1 c=0.1") & (frame["seed"] == 2)].iloc[-1]
    policy = functools.partial(POLICIES["ucb1"], c=0.1)
    alone = evo.allocate_live(
        "mmd", policy, arms=[4, 5], rounds=4, children=2, seed=2,
        log_dir=tmp_path / "a", progress=False,
    )  # fmt: skip
    assert alone.best_fitness[-1] == row["fitness"]
    before = {path: path.read_bytes() for path in arms}
    assert evo.sweep(sweep.folder, progress=False).summary.completed == 8
    assert {path: path.read_bytes() for path in arms} == before


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
    space = {"temperature": [0.2, 0.9], "generations": [400]}
    with OfflineServer(request_log=requests, latency=Latency(0.3, 0.3)) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        handle = evo.start_sweep(space, model="served", log_dir=folder, **COMMON)
        wait_for_lines(requests, 12)
        done = subprocess.run(
            [sys.executable, "-m", "evo", "pause", str(folder)], capture_output=True, text=True
        )
        assert done.returncode == 0
        summary = handle.wait(60).summary
        assert (summary.ended, summary.pending) == ("paused", 4)
        asked = seen_by(requests)
        assert sorted(asked) == sorted(logged(folder))
        handle = evo.start_sweep(folder, progress=False)
        wait_for_lines(requests, len(asked) + 4)
        handle.pause()
        handle.wait(60)
        assert sorted(seen_by(requests)) == sorted(logged(folder))


def test_a_stop_cancels_the_rest_and_a_wish_made_at_once_counts(tmp_path: Path) -> None:
    space = {"temperature": [0.2, 0.9], "generations": [400]}
    handle = evo.start_sweep(space, log_dir=tmp_path / "s", **COMMON)
    wait_for_lines(tmp_path / "s" / "events.jsonl", 6)
    handle.stop()
    summary = handle.wait(60).summary
    assert (summary.ended, summary.cancelled, summary.pending) == ("stopped", 4, 0)
    assert all(not evo.verify(path).faults for path in tmp_path.glob("s/runs/*.jsonl"))
    handle = evo.start_sweep(tmp_path / "s", progress=False)
    handle.pause()
    assert handle.wait(60).summary.ended == "paused"


def test_an_endpoint_that_is_down_ends_the_sweep_resumably(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer() as server:
        serve_as_model(server, tmp_path, monkeypatch)
    with pytest.raises(evo.models.client.EndpointDown):
        evo.sweep(
            {"temperature": [0.2, 0.9]}, model="served", generations=1, retries=0,
            log_dir=tmp_path / "s", **COMMON,
        )  # fmt: skip
    summary = summarise(tmp_path / "s")
    assert (summary.ended, summary.failed, summary.pending) == ("interrupted", 0, 4)


def test_a_sweep_over_searches_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its headers hold a hash of the source of shipped searches."""
    with tarfile.open(Path(__file__).parent / "data" / "sweep_over_searches.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    logs = {path: path.read_bytes() for path in tmp_path.rglob("runs/*.jsonl")}
    assert evo.sweep(tmp_path / "sweep", progress=False).summary.completed == 3
    assert {path: path.read_bytes() for path in tmp_path.rglob("runs/*.jsonl")} == logs


@pytest.mark.parametrize("pool", [{}, {"policy": "ucb1", "arms": 2, "rounds": 2}])
def test_a_dead_endpoint_fails_only_its_own_runs(
    pool: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer() as server:
        serve_as_model(server, tmp_path, monkeypatch)
    space = {"model": ["served", "offline"]}
    depth: dict[str, Any] = {"base": pool} if pool else {"generations": 1}
    given = {**COMMON, **depth, "retries": 0, "log_dir": tmp_path / "s"}
    summary = evo.sweep(space, **given).summary
    assert (summary.ended, summary.completed, summary.failed) == ("completed", 2, 2)
    state = EventLog(tmp_path / "s").state
    models = [values["model"] for values in state.configurations.values()]
    failed = {models[[*state.configurations].index(hash_)] for hash_, _ in state.failed}
    assert failed == {"served"}
    with OfflineServer() as server:
        serve_as_model(server, tmp_path, monkeypatch)
        summary = evo.sweep(space, **given).summary
    assert (summary.ended, summary.completed, summary.failed) == ("completed", 4, 0)


@pytest.mark.parametrize("strategy", ["random", "guided", {"name": "bayesian", "batch": 2}])
def test_a_sweep_may_be_given_more_trials_later(strategy: Any, tmp_path: Path) -> None:
    if strategy == {"name": "bayesian", "batch": 2}:
        pytest.importorskip("optuna")
    space = {"temperature": {"min": 0.1, "max": 1.2}}
    given = {**ONE, "generations": 1, "strategy": strategy, "log_dir": tmp_path / "s"}
    first = evo.sweep(space, trials=2, **given)
    before = EventLog(first.folder).state.trials
    more = evo.sweep(space, trials=4, **given)
    assert (more.summary.completed, more.summary.total) == (4, 4)
    assert EventLog(more.folder).state.trials[:2] == before
    again = evo.sweep(more.folder, trials=5, progress=False)  # by its folder alone
    assert (again.summary.completed, again.summary.total) == (5, 5)
    assert evo.sweep(space, **given).summary.total == 5  # as many as before
    with pytest.raises(ValueError, match="has tried 5 already, expected at least as many"):
        evo.sweep(space, trials=3, **given)
    assert evo.sweep(space, **given).summary.total == 5


def test_a_number_of_trials_needs_a_strategy_that_takes_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a grid, which is the strategy unless another is named"):
        evo.sweep(SPACE, trials=3, log_dir=tmp_path / "s", **COMMON)
    assert not (tmp_path / "s").exists()


def test_the_command_reads_a_file_and_its_folder_goes_on(tmp_path: Path, capsys) -> None:
    file, folder = tmp_path / "small.toml", str(tmp_path / "s")
    file.write_text(
        'task = "mmd"\nseeds = "1:3"\n[base]\ngenerations = 1\n[budget]\ncalls = 3\n'
        "[space]\nsampling.temperature = [0.2, 0.9]\nchildren = {min = 1, max = 2}\n"
    )
    assert main(["sweep", str(file), "--log-dir", folder, "-q"]) == 0
    assert "budget: " in capsys.readouterr().out
    assert main(["sweep", str(file), "--log-dir", folder, "--budget", "calls=50", "-q"]) == 0
    said = capsys.readouterr().out
    assert "completed: 8 of 8 runs completed" in said
    assert "sampling.temperature=0.2" in said
    assert main(["resume", folder, "-q"]) == 0
    assert main(["sweep", folder, "--no-resume"]) == 2
    assert "got resume=False, which begins another: give a space or" in capsys.readouterr().err
    file.write_text("task = 'mmd'\nspaces = {}\n")
    assert main(["sweep", str(file)]) == 2
    assert "unknown field `spaces` (known: task, space" in capsys.readouterr().err


def test_a_listener_neither_ends_nor_slows_a_sweep(tmp_path: Path) -> None:
    heard: list[str] = []

    def refuse(event: SweepEvent) -> None:
        heard.append(event.event)
        raise RuntimeError("no more")

    with pytest.warns(UserWarning, match="refuse: raised RuntimeError") as warned:
        sweep = evo.sweep({"generations": [1, 2]}, log_dir=tmp_path / "s", on_event=refuse, **ONE)
    assert len(warned) == 1
    assert sweep.summary.completed == 2
    assert heard == [event.event for event in EventLog(tmp_path / "s").events]


def test_ctrl_c_pauses(tmp_path: Path) -> None:
    def interrupt(event: SweepEvent) -> None:
        if event.event == "run_started":
            os.kill(os.getpid(), signal.SIGINT)

    # Also where the tests themselves run in the background of a shell.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            evo.sweep({"generations": [5000]}, log_dir=tmp_path / "s", on_event=interrupt, **ONE)
    finally:
        signal.signal(signal.SIGINT, before)
    summary = summarise(tmp_path / "s")
    assert (summary.ended, summary.pending) == ("paused", 1)


def test_a_sweeps_folder_does_not_say_where_calls_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = tmp_path / "requests.jsonl"
    monkeypatch.setenv("SECRET", "do-not-send")
    with OfflineServer(request_log=requests) as server:
        model = evo.Model(
            name="stranger", id="offline", base_url=server.url, key_variable="SECRET", is_llm=False
        )
        folder = tmp_path / "sweep"
        begun = evo.sweep(
            {"temperature": [0.5]},
            **ONE,
            model=model,
            generations=3,
            budget={"calls": 1},
            log_dir=folder,
        )
        assert begun.summary.pending == 1
        asked = requests.read_text()
        with pytest.raises(ValueError, match="is not among your"):
            evo.sweep(folder, budget={"calls": 9})
        assert requests.read_text() == asked


def test_a_sweep_that_found_fewer_configurations_than_trials_says_so(tmp_path: Path) -> None:
    space = {"children": [1, 2]}
    sweep = evo.sweep(space, strategy="random", trials=9, generations=1, log_dir=tmp_path / "s",
                      task="mmd", seeds=[1], progress=False)  # fmt: skip
    summary = sweep.summary
    assert (summary.configurations, summary.trials, summary.pending) == (2, 9, 0)
    assert "2 configurations, although 9 trials were asked for" in str(summary)


@pytest.mark.parametrize("k", thorough_after(1, range(len(ENDS))))
def test_a_run_that_a_target_or_the_patience_ends_is_complete(
    k: int, alone: dict[tuple[int, int], evo.Log], tmp_path: Path
) -> None:
    given = {**SHORT, **ENDS[k], "log_dir": tmp_path / "s"}
    done = evo.sweep({"temperature": [None]}, **given)
    assert (done.completed_runs, done.total_runs, done.stopped_reason) == (2, 2, "completed")
    frame = replay.load_sweep(done).set_index("seed")
    for seed in (1, 2):
        run, row = alone[k, seed], frame.loc[seed]
        assert (row["status"], row["done"]) == ("completed", len(run.generations))
        assert row["fitness"] == run.trajectory[-1]
        assert row["n_calls"] == len(run.calls)
        assert evo.read_log(row["log"]).trajectory.tolist() == run.trajectory.tolist()
    before = {path: path.read_bytes() for path in (tmp_path / "s" / "runs").iterdir()}
    assert evo.sweep({"temperature": [None]}, **given).completed_runs == 2
    assert {path: path.read_bytes() for path in before} == before


def test_an_allocation_of_a_sweep_ends_at_its_target_and_its_patience(tmp_path: Path) -> None:
    given: dict[str, Any] = {"task": "mmd", "seeds": [1], "children": 1, "progress": False}
    for name, goal in (("p", {"patience": 1}), ("t", {"target": 0.0})):
        made = evo.sweep(
            {"policy": ["round_robin"]}, arms=2, rounds=20, log_dir=tmp_path / name, **goal, **given
        )
        assert made.completed_runs == 1
        live = evo.allocate_live(
            "mmd", "round_robin", arms=[2, 3], rounds=20, children=1, seed=1, progress=False,
            log_dir=tmp_path / f"{name}-live", **goal,
        )  # fmt: skip
        (row,) = replay.load_sweep(made).to_dict("records")
        assert (row["status"], row["done"]) == ("completed", len(live.told))
        assert row["fitness"] == live.best_fitness[-1]
        assert live.end == next(iter(goal))


def test_the_command_and_the_file_take_both(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    text = 'task = "mmd"\nseeds = [1]\n[base]\nchildren = 1\ngenerations = 6\npatience = 1\n'
    file.write_text(text + "[space]\ntemperature = [0.5]\n")
    assert main(["sweep", str(file), "-q", "--log-dir", str(tmp_path / "a")]) == 0
    command = ["sweep", str(file), "-q", "--log-dir", str(tmp_path / "b"), "--target", "0.0"]
    assert main(command) == 0
    assert replay.load_sweep(tmp_path / "a")["done"].item() >= 1
    assert replay.load_sweep(tmp_path / "b")["done"].item() == 0
    assert main([*command, "--patience", "0"]) == 2
