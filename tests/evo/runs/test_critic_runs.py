"""Runs with critics: drafts, tasks without ground truth, what they cost, resume and rerun."""

import json
import random
import shutil
import warnings
from pathlib import Path

import msgspec
import pytest
from evo_runs import same_run, timeless

import evo
import replay
from evo.logs.cost import cost_of_calls
from evo.models.client import ModelClient
from evo.models.critics import ALIKE
from evo.runs.ask import child_seed
from evo.runs.bounds import cost_bound
from evo.runs.configuration import make_header
from evo.tasks.task import SHIPPED, TaskError, load_task

QUIET = {"progress": False}
COUNT = 6


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
    worst = cost_bound(drafted.header, 3, retries=0)
    assert worst.generation["calls"] == 3 * (3 + 3)
    critic = drafted.header.critic
    assert critic is not None
    prices = dict.fromkeys(("input_price", "cached_price", "output_price"), 0.0)
    free = msgspec.structs.replace(critic.model, **prices)
    header = msgspec.structs.replace(
        drafted.header, critic=msgspec.structs.replace(critic, model=free)
    )
    assert cost_of_calls(drafted.critic_calls, header).dollars == 0
    assert cost_of_calls(drafted.children, header).dollars


def test_of_equal_drafts_the_first_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = load_task("mmd").initial_program
    monkeypatch.setattr("evo.runs.ask.parse_reply", lambda *_, **__: program)
    log = evo.run("mmd", generations=1, children=2, drafts=3, critic="offline-2",
                  log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip
    assert {child.draft for child in log.children} == {0}
    assert not log.critic_calls


def test_a_single_draft_keeps_todays_children(tmp_path: Path) -> None:
    plain = evo.run("mmd", generations=2, children=3, log=tmp_path / "1.jsonl", **QUIET)
    with pytest.warns(UserWarning, match="never asked"):
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
    worst = cost_bound(scored.header, 3, retries=0)
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


@pytest.mark.slow
def test_what_is_bought_changes_in_a_fork(
    drafted: evo.Log, scored: evo.Log, tmp_path: Path
) -> None:
    options = {"at": 1, "generations": 3, "log_dir": tmp_path, **QUIET}
    (same,) = evo.fork(drafted, **options)
    assert timeless(same.children) == timeless(drafted.children)
    (plain,) = evo.fork(drafted, drafts=1, **options)
    assert plain.header.critic is None
    assert {c.draft for c in plain.children if c.generation > 1} == {0}
    run = evo.run("mmd", generations=1, children=3, seed=4, log=tmp_path / "run.jsonl", **QUIET)
    (more,) = evo.fork(run, drafts=2, critic="offline-2", **options)
    assert {r.generation for r in more.replies.values()} == {2, 3}
    assert len(more.replies) == 6
    (raced,) = evo.fork(scored, batches=3, **options)
    tried = {len(c.evaluation.instances) for c in raced.children if c.generation > 1}
    assert tried <= {0, 3, COUNT}
    for log in (same, plain, more, raced):
        assert evo.rerun(log).same
        assert not evo.verify(log).faults
    with pytest.raises(ValueError, match="drafts: 2 of them need a critic"):
        evo.fork(run, drafts=2, **options)
    with pytest.raises(TypeError, match="'children' is that of the log"):
        evo.fork(run, children=2, **options)


def test_a_selection_by_problems_pays_for_its_critic(tmp_path: Path) -> None:
    task = unscored_task(tmp_path / "unscored")
    texts = [{"text": "Answer with a number."}, {"text": "Answer in words."}]
    chosen = evo.select_best(texts, task=task, samples="problems", model="offline-2",
                             budget={"calls": 9}, log_dir=tmp_path / "a", **QUIET)  # fmt: skip
    logs = [evo.read_log(path) for path in (tmp_path / "a").glob("*.jsonl")]
    made = sum(len(log.calls) for log in logs)
    assert chosen.spent["calls"].sum() == made == 2 * chosen.samples.sum() == 10


def test_an_allocation_pays_for_drafts_and_critics(tmp_path: Path) -> None:
    settings = {"arms": 2, "rounds": 3, "children": 2, "drafts": 2, "critic": "offline-2"}
    done = evo.allocate_live("mmd", "round_robin", budget={"calls": 1000}, log_dir=tmp_path / "a",
                             **settings, **QUIET)  # fmt: skip
    assert done.spent["calls"][-1] == replay.load(*done.arms)["n_calls"].sum()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drafts": 2}, r"drafts: 2 of them need a critic"),
        ({"drafts": 0}, "drafts: expected at least 1"),
        ({"drafts": 2, "critic": "gpt-7"}, "unknown model"),
        ({"drafts": 2, "critic": "offline"}, "scores nothing"),
        ({"batches": 4}, "batches: only texts under which .*_distance has no data set"),
        ({"batches": -1}, "batches: expected at least 0"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_header("mmd", **options)  # type: ignore[arg-type]


def test_a_critic_that_gives_no_score_is_said_to_give_none(tmp_path: Path) -> None:
    def silent(messages: object) -> str:
        return "no idea"

    how = {"generations": 1, "children": 4, "log": tmp_path / "a.jsonl", **QUIET}
    with pytest.warns(
        UserWarning,
        match=r"none of its first 4 calls gave a score, a line such as 'Score: 7'.*no idea",
    ):
        log = evo.run("mmd", drafts=2, critic=silent, **how)
    assert len(log.critic_calls) >= 4


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
    from evo.logs.journal import encode_line

    header = encode_line(msgspec.structs.replace(drafted.header, critic=moved))
    path = tmp_path / "moved.jsonl"
    path.write_bytes(header + drafted.path.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(ValueError, match=r"the model of its critic, 'offline-2', is not as yours"):
        evo.resume(path, generations=4, **QUIET)


def test_a_critic_that_is_never_asked_is_warned_of(tmp_path):
    settings = {"critic": "offline-2", "generations": 1, "children": 1, "progress": False}
    with pytest.warns(UserWarning, match="never asked; give drafts=2 or more"):
        log = evo.run("mmd", log=tmp_path / "a.jsonl", **settings)
    assert log.header.critic is None
    with pytest.warns(UserWarning, match="never asked"):
        evo.run_many("mmd", seeds=[1, 2], log_dir=tmp_path / "many", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = evo.run("mmd", drafts=2, log=tmp_path / "b.jsonl", **settings)
    assert log.header.critic is not None


@pytest.mark.parametrize("other", [None, "Score: 8"])
def test_a_critic_whose_scores_are_all_the_same_is_warned_of(other):
    replies = iter(["Score: 7"] * (ALIKE - 1) + [other or "Score: 7"] + ["Score: 7"] * 20)
    with (
        evo.Critic(
            evo.Model("judge", call=lambda messages: next(replies)), "Is it good?"
        ) as critic,
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        for k in range(2 * ALIKE):
            critic.score("", "query", f"reply {k}")
    words = [str(each.message) for each in said]
    expected = [
        "critic judge: its first 12 scores are all 0.7; it changes nothing until they differ"
    ]
    assert words == ([] if other else expected)


@pytest.mark.parametrize("order", [{}, {"asynchronous": True}], ids=["generations", "steady"])
@pytest.mark.parametrize("prices", [{}, {"input_price": 10, "output_price": 10}])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_rerun_counts_drafts_whose_calls_failed_as_the_run_did(tmp_path, share, prices, order):
    def sound(messages, seed):
        return evo.Reply(
            f"```text\n{'x' * (seed % 99)}\n```", {"prompt_tokens": 9, "completion_tokens": 2}
        )

    def raises(messages, seed):
        if random.Random(seed).random() < share:
            raise KeyError("bug")
        return sound(messages, seed)

    models = [evo.Model(call.__name__, call=call, **prices) for call in (sound, raises)]
    judge = evo.Model("judge", call=lambda asked: f"Score: {len(asked[-1]['content']) % 9}")
    task = evo.task("texts", initial_program="0", evaluate=len, evolves="text", where="here")
    run = evo.run(
        task, models=models, generations=5, children=4, drafts=3, seed=1, log=tmp_path / "a.jsonl",
        critic=judge, **order, **QUIET,
    )  # fmt: skip
    assert any(reply.draft < 0 for reply in run.replies.values())
    assert evo.rerun(run.path, log=tmp_path / "b.jsonl").same
    again = evo.read_log(tmp_path / "b.jsonl")
    assert again.plans == run.plans
    assert again.requests == run.requests
    assert len(again.calls) == len(run.calls)
    columns = ["generation", "n_calls", "n_attempts", "tokens"]
    assert replay.load(again.path)[columns].equals(replay.load(run.path)[columns])
