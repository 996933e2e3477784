"""The shipped corpus is whole, sound, and can be made again."""

import csv
import gzip
import hashlib
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiers import thorough_after

import evo
import replay
from evo.prompt import PROMPT_VERSION
from evo.runs.bounds import powers_of_two
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION
from evo.studies.protocol import load_protocol, logs_of

CORPUS = Path(__file__).resolve().parents[1] / "logs" / "corpus"
OFFLINE = CORPUS / "offline"
REAL = CORPUS / "qwen2.5-coder-1.5b"
"""Logs of a small LLM."""
PROTOCOL = CORPUS / "local-tsp"
"""What was made so far of the protocol of that name."""
FEEDBACK = CORPUS / "local-tsp-feedback"
"""Forks of its deep runs, a protocol of its own."""
POLICIES = CORPUS / "local-tsp-policies"
"""What was made so far of the confirmatory protocol about policies."""
FOUR = ("greedy", "islands", "openevolve", "shinka")
"""The ways that one budget was given to, and each alone."""
TASKS = ("circle_packing", "min_max_distance", "heilbronn_triangle")
ALL = int(os.environ.get("EVO_TORTURE", "1")) > 1
"""Whether every run that can be made again is, or one of each kind whose programs are quick."""
BUDGET = 512


def sums() -> dict[str, str]:
    lines = (CORPUS / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_every_file_is_as_listed() -> None:
    listed = sums()
    files = (path for path in CORPUS.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    found = {path.relative_to(CORPUS).as_posix(): path for path in files}
    assert set(listed) == set(found)
    for name, path in found.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[name], name
    assert sum(path.stat().st_size for path in found.values()) < 25_000_000


def test_allocations_over_other_tools_made_the_calls_of_their_budget() -> None:
    folder = CORPUS.parent / "samples" / "side-by-side-bandit"
    found = sorted(path for path in folder.rglob("*.jsonl*") if path.is_file())
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert lines == [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}"
        for path in found
    ]
    tasks = set()
    for journal in folder.glob("*/allocation.jsonl"):
        frame = replay.load(journal)
        assert len(frame["run"].unique()) == 4
        assert frame["n_calls"].sum() == 64
        tasks |= set(frame["task"])
    assert tasks == {"circle_packing", "min_max_distance", "heilbronn_triangle"}


def test_five_ways_made_the_same_number_of_calls_of_a_real_model() -> None:
    folder = CORPUS.parent / "samples" / "side-by-side-tsp"
    files = {path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert (folder / "SHA256SUMS").read_text().splitlines() == [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}"
        for name in sorted(path.relative_to(folder).as_posix() for path in files)
    ]
    made = replay.load(*folder.glob("*.jsonl.gz")).groupby("run")[["n_calls", "tokens"]].sum()
    assert [name.split("-")[0] for name in made.index] == list(FOUR)
    assert set(made["n_calls"]) == {64}
    counted = pd.read_csv(folder / "gate.csv", index_col="run")
    for run, counts in counted.iterrows():
        assert made.loc[run].tolist() == [counts["calls"], counts["tokens"]]
    over = replay.load(folder / "ucb1-tsp_construct-s0" / "allocation.jsonl")
    assert set(over["search"]) == set(FOUR)
    assert over["n_calls"].sum() == 64


def test_a_gate_gives_every_call_of_a_tool_a_seed_of_its_own() -> None:
    folder = CORPUS.parent / "samples" / "side-by-side-tsp"
    for log in (
        folder / "openevolve-tsp_construct-s3000.jsonl.gz",
        folder / "ucb1-tsp_construct-s0" / "arm-00.jsonl.gz",
    ):
        children = evo.read_log(log).children
        assert len({child.seed for child in children}) == len(children)
        assert len({child.reply for child in children}) > len(children) / 2


def test_other_tools_made_as_many_calls_as_the_gate_counted() -> None:
    folder = CORPUS.parent / "samples" / "side-by-side"
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    frame = replay.load(folder)
    counted = pd.read_csv(folder / "gate.csv", index_col="run")
    assert set(counted["calls"]) == {64}
    for run, rows in frame.groupby("run"):
        counts, made = counted.loc[str(run)], rows[["n_calls", "tokens"]].sum()
        if str(run).startswith("openevolve"):
            assert (made["n_calls"], made["tokens"]) == (counts["calls"], counts["tokens"])
        else:  # what left no program is not in its database
            assert 60 <= made["n_calls"] <= 64
            assert 0.9 * counts["tokens"] < made["tokens"] <= counts["tokens"]


@pytest.mark.thorough
def test_every_cell_of_every_budget_has_ten_runs() -> None:
    frame = replay.load(OFFLINE)
    assert not (frame["model"] != "offline").any()
    depth = frame.groupby(["task", "children", "seed"])["generation"].max()
    for task in TASKS:
        for children in powers_of_two(BUDGET):
            runs = depth.loc[task, children]
            assert runs.index.tolist() == list(range(40, 50))
            assert (runs == BUDGET // children).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "children", "seed", "generations"),
    thorough_after(
        1,
        [
            ("circle_packing", 16, 43, 4),
            ("min_max_distance", 1, 47, 48),
            ("heilbronn_triangle", 64, 45, 1),
        ],
    ),
)
def test_a_run_is_made_again(
    task: str, children: int, seed: int, generations: int, tmp_path: Path
) -> None:
    name = f"{task}-offline-N{children}-s{seed}.jsonl.gz"
    shipped = evo.read_log(OFFLINE / task / name)
    again = evo.run(
        task,
        generations=generations,
        children=children,
        seed=seed,
        evaluation_timeout=shipped.header.limits.seconds,
        log=tmp_path / "again.jsonl",
        progress=False,
    )
    assert again.header.task.hash == shipped.header.task.hash
    before = shipped.outcomes[: generations * children]
    assert [(o.seed, o.prompt_hash) for o in again.outcomes] == [
        (o.seed, o.prompt_hash) for o in before
    ]
    assert [o.evaluation.status for o in again.outcomes] == [o.evaluation.status for o in before]
    fitness = [[np.nan if (f := o.evaluation.fitness) is None else f for o in log]
               for log in (again.outcomes, before)]  # fmt: skip
    np.testing.assert_allclose(fitness[0], fitness[1], rtol=0, atol=1e-6)


REAL_LOGS = sorted(REAL.rglob("*.jsonl.gz"))


def test_the_llm_ran_two_tasks_on_five_seeds() -> None:
    frame = replay.load(REAL)
    assert set(frame["model"]) == {REAL.name}
    depth = frame.groupby(["task", "children", "seed"])["generation"].max()
    for task in ("min_max_distance", "heilbronn_triangle"):
        runs = depth.loc[task, 8]
        assert runs.index.tolist() == list(range(40, 45))
        assert (runs == 4).all()


@pytest.mark.parametrize("path", REAL_LOGS, ids=lambda path: path.stem)
def test_a_log_of_the_llm_is_whole(path: Path) -> None:
    log = evo.read_log(path)
    assert not evo.verify(path).faults
    assert not log.header.compact
    assert log.header.prompt_version == PROMPT_VERSION
    assert len(log.children) == 32
    for child in log.children:
        status = child.evaluation.status
        assert (child.reply is None) == (status == "no_reply")
        assert (child.program is None) == (status in ("no_reply", "no_program"))
        assert status == "no_reply" or child.attempts[-1].usage["completion_tokens"] > 0


STAND_IN = sorted((CORPUS / "offline-tsp").glob("*.gz"))
"""The offline model on the task of the protocol, complete logs."""


@pytest.mark.parametrize("path", STAND_IN, ids=lambda path: path.stem)
def test_the_stand_in_ran_the_design_of_the_protocol(path: Path) -> None:
    log = evo.read_log(path)
    assert not evo.verify(path).faults
    assert log.header.task.hash == load_protocol("local-tsp").tasks["tsp_construct"]
    assert len(log.outcomes) == log.header.children * len(log.generations) == 24


SEARCHES = sorted((CORPUS / "searches").glob("*.gz"))


def test_four_searches_ran_at_equal_calls() -> None:
    frame = replay.load(CORPUS / "searches")
    runs = frame.groupby(["task", "search"])["run"].nunique()
    assert len(runs) == 12
    assert (runs == 8).all()
    assert (frame.groupby("run")["n_calls"].sum() == 48).all()
    for path in SEARCHES:
        assert not evo.verify(path).faults


SOME = re.compile(
    r"N8-s42|(2168f0f8531d|6608523e582b)-s42|triangle-qwen.*s44|distance-qwen.*s41|distance-offline-2.*s42"
    r"|broad-s1110|deep-s1006|single-s1201|o(n|ff)-s1004-c0"
)


SLOW = (pytest.mark.slow,)
THOROUGH = (pytest.mark.slow, pytest.mark.thorough)


def made_again(paths: list[Path]) -> list[object]:
    """Logs that are played again, which takes as long as their programs took."""
    kept = [path for path in paths if ALL or SOME.search(path.name)]
    return [pytest.param(path, marks=SLOW if k < 2 else THOROUGH) for k, path in enumerate(kept)]


SMALL = sorted((CORPUS.parent / "samples" / "qwen2.5-coder-1.5b").rglob("*.jsonl"))
"""More of it: a system prompt for word problems, and an allocation over four arms."""


@pytest.mark.parametrize(
    "path",
    [
        *(p for p in SMALL if p.name != ALLOCATION),
        STAND_IN[0],
        *made_again([*SEARCHES, *REAL_LOGS]),
    ],
    ids=lambda path: path.stem,
)
def test_a_log_of_the_llm_plays_again(path: Path) -> None:
    outcome = evo.rerun(path)
    assert not outcome.differing_prompts, str(outcome)
    assert not outcome.differing_plans, str(outcome)
    # Another SciPy may run what failed with the log's; what ran has the same fitness.
    other = {"numpy", "scipy"} & set(outcome.other_versions)
    left = [each for each in outcome.differences if not (other and each.logged.status == "error")]
    assert left == [], str(outcome)


def test_the_allocation_of_the_llm_is_repeated_by_its_replay() -> None:
    (path,) = (p for p in SMALL if p.name == ALLOCATION)
    journal = read_journal(path)
    fitness = replay.fitness_matrix(replay.load(path))
    header = journal.header
    played = replay.simulate(
        fitness,
        header.policy,
        rounds=header.rounds,
        replicates=1,
        seed=header.seed,
        missing="stop",
    )
    assert played.pulls[0].tolist() == [told.arm for _, told in sorted(journal.told.items())]


@pytest.mark.parametrize("name", [PROTOCOL.name, FEEDBACK.name, POLICIES.name])
def test_the_protocols_logs_are_its_own_and_sound(name: str) -> None:
    protocol, folder = load_protocol(name), CORPUS / name
    logs = [log for each in logs_of(protocol, folder).values() for log in each]
    assert len(logs) == len(list(folder.glob("*.jsonl*"))) > 0
    goals = {condition.name: condition.generations for condition in protocol.conditions}
    for number, log in enumerate(logs):  # their bytes are as listed: not all are verified each time
        assert (number % 4 and not ALL) or evo.verify(log.path).faults == ()
        complete = len(log.generations) == goals[log.header.condition]
        assert complete == (log.path.suffix == ".gz")


FORKS = sorted(FEEDBACK.glob("*.gz"))


@pytest.mark.parametrize(
    "path",
    made_again([*sorted(PROTOCOL.glob("*.gz")), *sorted(POLICIES.glob("*.gz")), *FORKS]),
    ids=lambda path: path.stem,
)
def test_a_run_of_a_protocol_plays_again(path: Path) -> None:
    assert evo.rerun(path).same


def test_a_forks_copies_are_told_apart_by_what_they_are_told_alone() -> None:
    """Copy k of a state has one seed on both sides, and shares all that went before."""
    heads = {log.path.name.split(".")[0]: log for log in map(evo.read_log, FORKS)}
    pairs = [
        (heads[f"off{name[2:]}"], log)
        for name, log in heads.items()
        if name.startswith("on") and f"off{name[2:]}" in heads
    ]
    assert pairs
    for off, on in pairs:
        assert (off.header.seed, off.header.feedback) == (on.header.seed, not on.header.feedback)
        assert off.trajectory[:25].tolist() == on.trajectory[:25].tolist()


def test_the_pilots_are_sound() -> None:
    paths = sorted((CORPUS / "pilots").rglob("*.gz"))
    assert len(paths) == 24
    assert all(evo.verify(path).faults == () for path in paths)


def test_control_without_an_llm_is_whole_and_made_again() -> None:
    """Every run has 25 rows from the same start, and the best rule is worth what the table says."""
    with gzip.open(CORPUS / "control" / "tsp_construct.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    runs = Counter(row["run"] for row in rows)
    assert len(runs) == 48
    assert set(runs.values()) == {25}
    task = evo.load_task("tsp_construct")
    best = max(rows, key=lambda row: float(row["fitness"]))
    program = task.initial_program
    for term, weight in zip(("near", "home", "onward"), best["weights"].split(), strict=True):
        program = program.replace(f"1.0 * {term}", f"{weight} * {term}")
    assert evo.evaluate(task, program).fitness == pytest.approx(float(best["fitness"]), abs=1e-3)


@pytest.mark.parametrize("search", ["greedy", "population"])
def test_the_second_stand_in_replies_as_when_its_runs_were_made(
    search: str, tmp_path: Path
) -> None:
    """Made again, the first generations of a shipped run have the same replies."""
    logs = map(evo.read_log, SEARCHES)
    for logged in logs:
        header = logged.header
        name = header.search.name if header.search else "greedy"
        if (name, header.task.name, header.seed) == (search, "min_max_distance", 40):
            break
    again = evo.run(
        "mmd", search=search, model="offline-2", children=4, generations=3, seed=40,
        log=tmp_path / "again.jsonl",
    )  # fmt: skip
    assert [c.reply for c in again.children] == [c.reply for c in logged.children[:12]]
