import asyncio
import gzip
import inspect
import threading
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from evo_runs import QUIET, timeless, write_task
from samples import sample_child

import evo
import evo.runs.planning
from evo.logs.journal import LogBusyError, LogError, Writer
from evo.models.client import EndpointDown, EndpointRefused
from evo.runs import delivery, verbs
from evo.runs.loop import fitness_of
from evo.searches.base import choose
from evo.tasks.task import TaskError


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("search") / "short.jsonl"
    return evo.run("mmd", generations=3, children=4, seed=5, log=path, **QUIET)


def test_run_logs_everything(short: evo.Log) -> None:
    assert short.finished
    assert len(short.children) == 12
    assert short.trajectory.shape == (4,)
    assert (np.diff(short.trajectory) >= 0).all()
    assert not evo.verify(short.path).faults
    assert evo.evaluate("mmd", short.best.program).fitness == short.best.evaluation.fitness
    assert "offline, seed" in repr(short)
    assert "<svg" in short._repr_html_()


def test_one_call_at_a_time_gives_the_same_log(short: evo.Log, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    one = evo.run("mmd", generations=3, children=4, seed=5, log=path, max_concurrent=1, **QUIET)
    assert timeless(one.children) == timeless(short.children)
    order = [(o.generation, o.index) for o in one.outcomes]
    assert order == sorted(order)
    assert [msgspec.structs.replace(g, seconds=0) for g in one.generations] == [
        msgspec.structs.replace(g, seconds=0) for g in short.generations
    ]


def test_rerun_reproduces_and_finds_what_differs(
    short: evo.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = evo.rerun(short.path)
    assert outcome.same
    assert outcome.evaluations == 13
    build, more = evo.runs.planning.build_messages, [{"role": "user", "content": "Think."}]
    with monkeypatch.context() as patched:
        patched.setattr(evo.runs.planning, "build_messages", lambda *a, **k: build(*a, **k) + more)
        outcome = evo.rerun(short)
    assert (len(outcome.differing_prompts), outcome.differences, outcome.same) == (12, (), False)
    assert "12 prompts differ" in str(outcome)
    assert outcome.other_versions == {}
    with monkeypatch.context() as patched:
        other = evo.runs.configuration.software_versions() | {"scipy": "0.1"}
        patched.setattr(evo.runs.playback, "software_versions", lambda: other)
        (there,) = {old for old, _ in outcome.other_versions.values()}
        assert outcome.other_versions == {"scipy": (there, "0.1")}
        assert f"scipy {there} in the log, 0.1 now" in str(outcome)
    small = evo.compact(short.path, tmp_path / "small.jsonl.gz")
    with pytest.raises(LogError, match="compact"):
        evo.rerun(small.path)
    with pytest.raises(LogError, match="compact"):
        evo.resume(small.path)


def test_rescore_takes_another_metric(short: evo.Log, tmp_path: Path) -> None:
    strict = evo.rescore(short.path, metric="strict_fitness", log=tmp_path / "strict.jsonl")
    for before, after in zip(short.outcomes, strict.outcomes, strict=True):
        assert before.evaluation.status == after.evaluation.status
        if after.evaluation.fitness is not None:
            assert after.evaluation.fitness == before.evaluation.metrics["strict_fitness"]
    assert not evo.verify(strict.path).faults
    with pytest.raises(LogError, match="only runs of evo can go on"):
        evo.resume(strict.path, **QUIET)
    with pytest.raises(ValueError, match="the evaluations have objective, strict_fitness"):
        evo.rescore(short.path, metric="beauty", log=tmp_path / "x.jsonl")


def test_run_many_equals_single_runs(short: evo.Log, tmp_path: Path) -> None:
    logs = evo.run_many("mmd", seeds=[4, 5], generations=3, children=4, log_dir=tmp_path, **QUIET)
    assert [log.header.seed for log in logs] == [4, 5]
    assert timeless(logs[1].children) == timeless(short.children)
    again = evo.run_many(
        "mmd", seeds=[4, 5, 6], generations=3, children=4, log_dir=tmp_path, resume=True, **QUIET
    )
    assert [log.path for log in again[:2]] == [log.path for log in logs]
    assert len(list(tmp_path.glob("*.jsonl"))) == 3


def test_background_run_can_be_awaited_and_stopped(tmp_path: Path) -> None:
    handle = evo.start("mmd", generations=2, children=2, log=tmp_path / "a.jsonl", **QUIET)
    log = asyncio.run(_wait(handle))
    assert log.finished
    handle = evo.start("mmd", generations=500, children=2, log=tmp_path / "b.jsonl", **QUIET)
    while len(handle.log.generations) < 1:
        time.sleep(0.05)
    handle.stop()
    stopped = handle.wait(300)
    assert 1 <= len(stopped.generations) < 500
    assert stopped.ends[-1].reason == "interrupted"
    goal = len(stopped.generations) + 1
    assert len(evo.resume(stopped, generations=goal, **QUIET).generations) == goal


async def _wait(handle: evo.Handle) -> evo.Log:
    log: evo.Log = await handle
    return log


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = threading.active_count()
    evo.run("mmd", generations=1, children=8, log=tmp_path / "a.jsonl", **QUIET)
    deadline = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_endpoint_down_stops_resumably(tmp_path: Path) -> None:
    model = evo.Model(name="nobody", base_url="http://127.0.0.1:9/v1")
    path = tmp_path / "down.jsonl"
    with pytest.raises(EndpointDown, match=r"127\.0\.0\.1:9"):
        evo.run("mmd", model=model, generations=2, children=3, log=path, retries=0, **QUIET)
    log = evo.read_log(path)
    assert log.outcomes == []
    assert log.ends[-1].reason == "endpoint"


def test_prompt_beyond_the_context_ends_the_run(tmp_path: Path) -> None:
    judge = "def evaluate(path):\n    return {'combined_score': 1.0}\n"
    folder = write_task(tmp_path / "long", "x = 1\n" + "# long\n" * 40_000, judge)
    with pytest.raises(EndpointRefused, match="every child of generation 1"):
        evo.run(folder, generations=2, children=3, log=tmp_path / "l.jsonl", **QUIET)
    log = evo.read_log(tmp_path / "l.jsonl")
    assert log.outcomes == []
    assert log.ends[-1].reason == "refused"


def test_busy_log_is_refused(short: evo.Log, tmp_path: Path) -> None:
    path = tmp_path / "busy.jsonl"
    path.write_bytes(short.path.read_bytes())
    writer = Writer.claim(path)
    with pytest.raises(LogBusyError):
        evo.resume(path, generations=9, **QUIET)
    writer.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"generations": 0}, "generations"),
        ({"children": 0}, "children"),
        ({"seed": -1}, "seed"),
        ({"model": "gpt-0"}, "gpt-0"),
        ({"temperature": -1.0}, "temperature"),
        ({"min_improvement": -1.0}, "min_improvement"),
        ({"max_concurrent": 0}, "max_concurrent"),
        ({"evaluation_timeout": 0.0}, "seconds"),
    ],
)
def test_mistakes_are_named_before_anything_happens(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evo.run("mmd", log=tmp_path / "x.jsonl", **arguments)
    with pytest.raises(TypeError, match="unknown argument 'generation'"):
        evo.run("mmd", log=tmp_path / "x.jsonl", generation=3)
    assert not list(tmp_path.iterdir())


def test_choice_needs_a_strict_improvement_and_ignores_last_bits() -> None:
    a, b, c = (sample_child(1, i, f) for i, f in enumerate((0.5, 0.5 + 1e-12, None)))
    assert choose([a, b, c], 0.4, 1e-9, fitness_of) is a
    assert choose([a, b, c], 0.4, 0.0, fitness_of) is b
    assert choose([a, b, c], 0.5, 1e-9, fitness_of) is None
    assert choose([a, b, c], None, 1e-9, fitness_of) is a
    assert choose([c], None, 1e-9, fitness_of) is None
    assert choose([a, b, sample_child(1, 2, 0.65)], 0.5, 0.1, fitness_of).index == 2  # a high bar


def test_grid_goes_on_where_it_was(tmp_path: Path) -> None:
    logs = evo.run_grid("mmd", calls=4, seeds=[1], log_dir=tmp_path, **QUIET)
    shapes = [(len(log.generations), log.header.children) for log in logs]
    assert shapes == [(4, 1), (2, 2), (1, 4)]
    stamps = {path: path.stat().st_size for path in tmp_path.iterdir()}
    again = evo.run_grid("mmd", calls=8, seeds=[1], log_dir=tmp_path, **QUIET)
    shapes = [(len(log.generations), log.header.children) for log in again]
    assert shapes == [(8, 1), (4, 2), (2, 4), (1, 8)]
    assert all(path.stat().st_size > size for path, size in stamps.items())


def test_resume_needs_a_goal_if_a_kill_left_only_the_header(short: evo.Log, tmp_path: Path) -> None:
    path = tmp_path / "header.jsonl"
    path.write_bytes(short.path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(ValueError, match="states no goal"):
        evo.resume(path, **QUIET)
    with pytest.raises(ValueError, match="holds 3 generations already"):
        evo.resume(short, generations=2, **QUIET)


def test_a_log_is_never_without_its_goal(short: evo.Log, tmp_path: Path) -> None:
    """The sandbox takes its time to start; the log begins after that, with its session."""
    handle = evo.start("mmd", generations=3, children=4, seed=5, log=tmp_path / "a.jsonl", **QUIET)
    sizes = set()
    while handle.running:
        if (tmp_path / "a.jsonl").exists():
            data = (tmp_path / "a.jsonl").read_bytes()
            sizes.add(min(data.count(b"\n"), 2))
        time.sleep(0.001)
    assert sizes <= {0, 2}
    assert timeless(handle.wait().children) == timeless(short.children)


def test_a_log_with_a_missing_line_is_refused(short: evo.Log, tmp_path: Path) -> None:
    lines = short.path.read_bytes().splitlines(keepends=True)
    child = next(k for k, line in enumerate(lines) if b'"kind":"child"' in line[:40])
    path = tmp_path / "hole.jsonl"
    path.write_bytes(b"".join(lines[:child] + lines[child + 1 :]))
    for work in (evo.resume, evo.rerun, evo.rescore):
        with pytest.raises(LogError, match="generation 1 is complete but has children"):
            work(path)


def test_several_logs_are_given_and_a_folder_says_how(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    evo.run_many("mmd", seeds=[1, 2], generations=1, children=1, log_dir=folder, **QUIET)
    with pytest.raises(TypeError, match=r"got the folder .*glob\('\*\.jsonl'\).*`evo resume "):
        evo.resume_many(str(folder), generations=2, **QUIET)
    one, _ = paths = sorted(folder.glob("*.jsonl"))
    assert [each.path for each in evo.resume_many(str(one), generations=2, **QUIET)] == [one]
    longer = evo.resume_many(paths, generations=2, **QUIET)
    assert [len(each.generations) for each in longer] == [2, 2]


def test_start_refuses_a_log_that_exists(short: evo.Log) -> None:
    with pytest.raises(LogError, match="exists already"):
        evo.start("mmd", log=short.path, resume=False, **QUIET)
    with pytest.raises(LogError, match="no such log"):
        evo.stop(short.path.with_name("none.jsonl"))


def test_going_on_with_a_compressed_finished_run_makes_nothing(
    short: evo.Log, tmp_path: Path
) -> None:
    finished = tmp_path / "min_max_distance-offline-N4-s5.jsonl.gz"
    finished.write_bytes(gzip.compress(short.path.read_bytes()))
    (log,) = evo.run_many(
        "mmd", seeds=[5], generations=3, children=4, log_dir=tmp_path, resume=True, **QUIET
    )
    assert log.path == finished
    assert list(tmp_path.iterdir()) == [finished]


SLEEPER = """
import time
from pathlib import Path


def evaluate(program_path):
    if "return 1\\n" not in Path(program_path).read_text():
        time.sleep(300)
    return {"combined_score": 1.0}
"""


def test_stop_does_not_wait_for_a_slow_evaluation(tmp_path: Path) -> None:
    write_task(tmp_path, "def f():\n    return 1\n", SLEEPER)
    handle = evo.start(
        tmp_path, children=8, log=tmp_path / "a.jsonl", evaluation_timeout=300, **QUIET
    )
    while not handle.log.initial:
        time.sleep(0.05)
    handle.stop()
    assert not handle.wait(60).finished


def test_a_task_that_cannot_work_says_so(tmp_path: Path) -> None:
    missing = "import pyscipopt\ndef evaluate(p):\n    return {}\n"
    task = write_task(tmp_path / "task", "def f():\n    return 1\n", missing)
    path, evaluator = tmp_path / "a.jsonl", task / "evaluator.py"
    with pytest.raises(TaskError, match="pip install pyscipopt"):
        evo.run(task, generations=1, children=1, log=path, **QUIET)
    assert evo.read_log(path).initial is None
    evaluator.write_text("def evaluate(p):\n    return {'a': 1.0, 'b': 2.0}\n")
    with pytest.warns(UserWarning, match="no combined_score"):
        evo.run(task, generations=1, children=1, log=tmp_path / "b.jsonl", **QUIET)
    evaluator.write_text("def evaluate(p):\n    return open('data.csv').read()\n")
    with pytest.raises(TaskError, match=r"'data\.csv': the sandbox sees none of your files"):
        evo.run(task, generations=1, children=1, log=tmp_path / "c.jsonl", **QUIET)
    evaluator.write_text("def evaluate(p):\n    raise ValueError('it is broken')\n")
    with pytest.raises(TaskError, match="it is broken"):
        evo.run(task, generations=1, children=1, log=tmp_path / "c.jsonl", **QUIET)
    assert not (tmp_path / "c.jsonl").exists()  # nobody could go on with it


def test_events_are_told_once_they_are_logged(tmp_path: Path) -> None:
    told: list[evo.Event] = []

    def listen(event: evo.Event) -> None:
        log = evo.read_log(event.path)
        lines = {"start": 1, "child": len(log.outcomes), "generation": len(log.generations)}
        assert lines.get(event.kind, 1) > 0
        told.append(event)

    evo.run_many(
        "mmd", seeds=[1, 2], generations=2, children=2, log_dir=tmp_path, on_event=listen, **QUIET
    )
    for seed in (1, 2):
        mine = [event for event in told if event.header.seed == seed]
        kinds = [event.kind for event in mine]
        assert kinds == ["start", *(["child"] * 2 + ["generation"]) * 2, "end"]
        assert [e.generation for e in mine if e.kind == "generation"] == [1, 2]
        log = evo.read_log(mine[0].path)
        assert mine[-1].best_fitness == log.trajectory[-1]
        assert mine[-2].record == log.generations[-1]


def test_a_listener_that_raises_is_warned_of_once_and_hears_the_rest(tmp_path: Path) -> None:
    heard: list[str] = []

    def refuse(event: evo.Event) -> None:
        heard.append(event.kind)
        raise SystemExit("no more")

    with pytest.warns(UserWarning, match=r"refuse: raised SystemExit\('no more'\)") as warned:
        log = evo.run("mmd", generations=2, children=2, log=tmp_path / "a.jsonl", on_event=refuse,
                      **QUIET)  # fmt: skip
    assert len(warned) == 1
    assert heard == ["start", *(["child"] * 2 + ["generation"]) * 2, "end"]
    assert log.ended
    assert log.finished


def test_a_slow_listener_slows_no_run_and_hears_everything(tmp_path: Path) -> None:
    path, released, heard = tmp_path / "a.jsonl", threading.Event(), list[str]()

    def wait(event: evo.Event) -> None:
        assert released.wait(60)
        heard.append(event.kind)

    handle = evo.start("mmd", generations=2, children=2, log=path, on_event=wait, **QUIET)
    while not (path.exists() and evo.read_log(path).ended):
        time.sleep(0.02)
    assert not heard
    assert handle.running
    released.set()
    handle.wait(60)
    assert len(heard) == 8


def test_a_listener_that_never_returns_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE", 0.3)
    released = threading.Event()
    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl",
                  on_event=lambda event: released.wait(60), **QUIET)  # fmt: skip
    with pytest.warns(UserWarning, match="no listener took in time: 4 to <lambda>"):
        delivery.deliver_rest(0.1)
    released.set()
    assert log.finished


@pytest.mark.parametrize("name", ["run", "run_many", "run_grid"])
def test_what_a_verb_prepares_has_its_defaults(name: str) -> None:
    pair = (getattr(verbs, name), getattr(verbs, f"prepare_{name.removeprefix('run_')}"))
    one, other = ({k: p.default for k, p in inspect.signature(f).parameters.items()} for f in pair)
    shared = one.keys() & other.keys()
    assert {k: one[k] for k in shared} == {k: other[k] for k in shared}
    if name == "run_grid":
        assert one["seeds"] == range(40, 50)  # the paper's
