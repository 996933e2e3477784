"""Runs with critics: drafts, tasks without ground truth, what they cost, resume and rerun."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from test_instances import untimed
from test_kills import finish, kill_after, seen_by, serve_as_model
from test_search import timeless

import evo
import replay
from evo.budget import worst_of
from evo.configuration import make_header
from evo.cost import cost_of_calls
from evo.llm.client import ModelClient
from evo.llm.server import OfflineServer
from evo.runs.making import child_seed
from evo.task import SHIPPED, TaskError, calls_of_evaluation, load_task

QUIET = {"progress": False}
COUNT = 6


def same_run(one: evo.Log, other: evo.Log) -> bool:
    critics = untimed(one.critic_calls) == untimed(other.critic_calls)
    calls = untimed(one.instance_calls) == untimed(other.instance_calls)
    return critics and calls and timeless(one.children) == timeless(other.children)


def unscored_task(folder: Path, told: str = 'critic = "offline-2"') -> Path:
    """Word problems whose right answers nobody knows."""
    folder.mkdir()
    shutil.copy(SHIPPED / "word_problems" / "initial_program.txt", folder)
    rows = (SHIPPED / "word_problems" / "instances.jsonl").read_text().splitlines()[:COUNT]
    lines = [
        json.dumps({k: v for k, v in json.loads(row).items() if k != "answer"}) for row in rows
    ]
    (folder / "instances.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "task.toml").write_text(
        f'evolves = "text"\ninstances = "instances.jsonl"\nscore = "critic"\n{told}\n'
        'rubric = "Is the last number the right answer?"\n'
    )
    return folder


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("drafts") / "drafted.jsonl"
    return evo.run("mmd", generations=3, children=3, drafts=3, critic="offline-2", seed=4,
                   log=path, **QUIET)  # fmt: skip


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    folder = tmp_path_factory.mktemp("scored")
    task = unscored_task(folder / "unscored")
    return evo.run(task, generations=3, children=4, search="population", model="offline-2",
                   seed=2, log=folder / "scored.jsonl", **QUIET)  # fmt: skip


def test_the_best_draft_is_evaluated_and_all_are_paid(drafted: evo.Log) -> None:
    drafts = {(r.generation, r.index, r.draft): r for r in drafted.replies.values()}
    assert len(drafts) == 3 * 3 * 2
    scores = {call.program: call.score for call in drafted.critic_calls}
    assert len(scores) == len(drafted.critic_calls) > 9
    assert {child.draft for child in drafted.children} > {0}
    for child in drafted.children:
        assert (child.generation, child.index, child.draft) not in drafts
        assert child.seed == child_seed(4, 3, child.generation, child.index)
    calls = 3 * 3 * 3 + len(drafted.critic_calls)
    assert cost_of_calls(drafted.calls, drafted.header).calls == calls
    assert replay.load(drafted)["n_calls"].sum() == calls
    assert drafted.ends[-1].stats["calls"] == calls
    worst = worst_of(drafted.header, 3, instances=0, retries=0)
    assert worst.generation["calls"] == 3 * (3 + 3)


def test_a_single_draft_keeps_todays_children(tmp_path: Path) -> None:
    plain = evo.run("mmd", generations=2, children=3, log=tmp_path / "1.jsonl", **QUIET)
    told = evo.run("mmd", generations=2, children=3, drafts=1, critic="offline-2",
                   log=tmp_path / "2.jsonl", **QUIET)  # fmt: skip
    assert same_run(plain, told)
    assert told.header == plain.header


@pytest.mark.parametrize("name", ["drafted", "scored"])
def test_resume_from_any_line_repeats_no_call(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    log: evo.Log = request.getfixturevalue(name)
    lines = log.path.read_bytes().splitlines(keepends=True)
    for kept in (3, len(lines) // 3, len(lines) // 2, len(lines) - 3):
        path = tmp_path / f"{kept}.jsonl"
        path.write_bytes(b"".join(lines[:kept]) + b'{"crc":"torn')
        resumed = evo.resume(path, generations=3, **QUIET)
        assert same_run(resumed, log)
        assert len(resumed.calls) == len(log.calls)


@pytest.mark.parametrize("name", ["drafted", "scored"])
def test_rerun_and_rescore_ask_nobody(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: evo.Log = request.getfixturevalue(name)
    monkeypatch.delattr(ModelClient, "call")
    outcome = evo.rerun(log, log=tmp_path / "again.jsonl")
    assert outcome.same, str(outcome)
    again = evo.read_log(tmp_path / "again.jsonl")
    assert same_run(again, log)
    assert evo.rerun(again).same
    rescored = evo.rescore(log, log=tmp_path / "r.jsonl")
    assert rescored.trajectory.tolist() == pytest.approx(log.trajectory.tolist(), nan_ok=True)
    assert len(rescored.calls) == len(log.calls)
    small = evo.compact(log, tmp_path / "small.jsonl.gz")
    assert replay.load(small)["n_calls"].tolist() == replay.load(log)["n_calls"].tolist()


def test_one_at_a_time_gives_the_same_log(drafted: evo.Log, tmp_path: Path) -> None:
    one = evo.run("mmd", generations=3, children=3, drafts=3, critic="offline-2", seed=4,
                  max_concurrent=1, log=tmp_path / "1.jsonl", **QUIET)  # fmt: skip
    assert same_run(one, drafted)


def test_a_critic_gives_the_fitness_where_nobody_knows_it(scored: evo.Log) -> None:
    by_text: dict[int, list[float]] = {}
    assert all(call.score is not None for call in scored.critic_calls)
    for child in scored.children:
        if child.evaluation.status == "ok":
            scores = [each.score or 0.0 for each in child.evaluation.instances]
            assert child.evaluation.fitness == pytest.approx(sum(scores) / COUNT)
            by_text[child.index] = scores
    assert by_text
    assert not evo.verify(scored.path).faults
    asked = calls_of_evaluation(scored.header.task)
    worst = worst_of(scored.header, 3, instances=asked, retries=0)
    assert worst.initial["calls"] == 2 * COUNT
    assert worst.generation["calls"] == 4 * (1 + 2 * COUNT)
    spent = replay.load(scored)["n_calls"]
    assert spent[0] == 2 * COUNT
    assert spent[1:].max() <= worst.generation["calls"]


def test_an_actor_and_its_critic_improve_a_prompt(tmp_path: Path) -> None:
    """K prompts x queries -> replies -> critic -> fitness -> the next population."""
    task = unscored_task(tmp_path / "unscored")
    log = evo.run(task, generations=6, children=6, model="offline-2", seed=1, feedback=True,
                  search={"name": "population", "size": 6}, log=tmp_path / "a.jsonl",
                  **QUIET)  # fmt: skip
    assert log.trajectory[-1] > log.trajectory[0]
    assert {child.operator for child in log.children} > {"mutate"}


def test_an_allocation_pays_for_drafts_and_critics(tmp_path: Path) -> None:
    settings = {"arms": 2, "rounds": 3, "children": 2, "drafts": 2, "critic": "offline-2"}
    done = evo.allocate_live("mmd", "round_robin", budget={"calls": 1000}, log_dir=tmp_path / "a",
                             **settings, **QUIET)  # fmt: skip
    assert done.spent["calls"][-1] == replay.load(*done.arms)["n_calls"].sum()


@pytest.mark.slow
def test_kill_9_repeats_no_logged_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, request_log = tmp_path / "logs", tmp_path / "requests.jsonl"
    folder.mkdir()
    path = folder / "killed.jsonl"
    shape = ["-T", "100", "-N", "2", "-q"]
    start = ["run", "mmd", "--model", "served", "--drafts", "2", "--critic", "offline-2",
             "--log", str(path), *shape]  # fmt: skip
    with OfflineServer(request_log=request_log) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        logged: set[int] = set()
        before = 0
        for kill in range(5):
            command = ["resume", str(path), "-T", "100", "-q"] if path.exists() else start
            if kill < 4:
                assert not kill_after(command, folder, 6 + 9 * kill, 0.01 * kill)
            else:
                goal = len(evo.read_log(path).generations) + 1
                finish(["resume", str(path), "-T", str(goal), "-q"])
            asked = seen_by(request_log)
            assert not logged & set(asked[before:]), "a logged call was made again"
            before = len(asked)
            log = evo.read_log(path)
            places = [*log.replies, *((c.generation, c.index, c.draft) for c in log.outcomes)]
            logged = {child_seed(log.header.seed, 2, *place) for place in places}
    keys = [call.program for call in log.critic_calls]
    assert len(set(keys)) == len(keys)
    assert evo.rerun(path).same


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drafts": 2}, r"drafts: 2 of them need a critic"),
        ({"drafts": 0}, "drafts: expected at least 1"),
        ({"drafts": 2, "critic": "gpt-7"}, "unknown model"),
        ({"drafts": 2, "critic": "offline"}, "scores nothing"),
        ({"batches": 4}, "batches: texts on a data set"),
        ({"batches": -1}, "batches: expected at least 0"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_header("mmd", **options)  # type: ignore[arg-type]


def test_a_critic_needs_a_model_and_a_task_without_evaluator(tmp_path: Path) -> None:
    folder = unscored_task(tmp_path / "a", told="")
    with pytest.raises(ValueError, match=r"neither task.toml nor this run names its model"):
        make_header(folder)
    assert make_header(folder, critic="offline-2").critic is not None
    rubric = make_header(folder, critic=evo.Critic("offline-2", "Mine?")).critic
    assert rubric is not None
    assert rubric.rubric == "Mine?"
    toml = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(toml.replace('score = "critic"', ""))
    (folder / "evaluator.py").write_text("def score(value, instance): return 1.0\n")
    with pytest.raises(TaskError, match='these need score = "critic"'):
        load_task(folder)


def test_a_log_does_not_say_where_its_critic_is(drafted: evo.Log, tmp_path: Path) -> None:
    critic = drafted.header.critic
    assert critic is not None
    away = msgspec.structs.replace(critic.model, base_url="http://elsewhere.example/v1")
    moved = msgspec.structs.replace(critic, model=away)
    from evo.journal import encode_line

    header = encode_line(msgspec.structs.replace(drafted.header, critic=moved))
    path = tmp_path / "moved.jsonl"
    path.write_bytes(header + drafted.path.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(ValueError, match=r"the model of its critic, 'offline-2', is not as yours"):
        evo.resume(path, generations=4, **QUIET)
