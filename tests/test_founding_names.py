"""Every row of the guide's table of names runs: what is promised there happens here."""

import json
import linecache
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
from evo import parallel
from evo.models.critics import rubrics_of
from evo.models.registry import find_model
from evo.runs.concurrency import PRESETS
from evo.searches import Population
from evo.studies.sweep.strategies import STRATEGIES

PAGE = Path(__file__).resolve().parents[1] / "notebooks" / "guide" / "names.md"
PROMPTS = ["Think step by step.", "Be brief.", "Check your answer.", "Answer with a number."]
QUERY = "Problem: what is 3 plus 4?"


class Agent:
    """Counts how many of its calls are in flight."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, row: int, *, skill: float) -> float:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.001)
        with self._lock:
            self.now -= 1
        return skill if row % 2 else skill / 2


def test_select_best_parallel_and_max_concurrent(tmp_path: Path) -> None:
    choices = [{"skill": 0.2}, {"skill": 0.9}]
    found, agents = [], []
    for name, how in {
        "default": {},
        "bounded": {"parallel": True, "max_concurrent": 3},
        "in order": {"parallel": False},
    }.items():
        agents.append(Agent())
        found.append(
            evo.select_best(
                choices, evaluate=agents[-1], data=range(12), selector="brute_force",
                log_dir=tmp_path / name, progress=False, **how,
            )
        )  # fmt: skip
    assert [each.configurations[each.winner] for each in found] == [{"skill": 0.9}] * 3
    assert agents[0].most <= 20
    assert agents[1].most <= 3
    assert agents[2].most == 1


def test_the_two_level_split_of_plan_concurrency() -> None:
    asked = [(20, 5), (20, 100), (20, 1), (10, 10)]
    assert [evo.plan_concurrency(*each) for each in asked] == [(4, 5), (1, 20), (20, 1), (1, 10)]


@pytest.mark.parametrize(("given", "split"), [({"interval": "compat"}, [5] * 4), ({}, [10] * 2)])
def test_a_selection_begins_its_calls_in_batches(
    given: dict[str, Any], split: list[int], tmp_path: Path
) -> None:
    in_flight = threading.Barrier(20, timeout=60)
    called, lock = list[float](), threading.Lock()

    def agent(row: int, *, skill: float) -> float:
        with lock:
            called.append(skill)
            first = len(called) <= 20
        if first:
            in_flight.wait()
        return skill

    evo.select_best(
        [{"skill": k / 10} for k in range(8)], evaluate=agent, data=range(20), batch=5,
        max_concurrent=20, log_dir=tmp_path / "selection", progress=False, **given,
    )  # fmt: skip
    assert [called[:20].count(k / 10) for k in range(len(split))] == split


def test_every_way_to_choose_is_a_selector() -> None:
    named = {
        "brute_force", "random_search", "hill_climbing", "arm_elimination", "threshold",
        "epsilon_lucb", "bayesian",
    }  # fmt: skip
    assert named <= set(evo.SELECTORS), sorted(evo.SELECTORS)


def test_the_fields_of_the_evolution_configuration(tmp_path: Path) -> None:
    log = evo.run(
        "word_problems",
        model="offline-2",
        search=Population(size=4),  # population_size
        generations=2,  # max_generations
        children=3,
        batches=8,  # async_batch_size: problems of the first batch
        max_concurrent=10,  # max_concurrent_requests, enable_async_evaluation
        texts_at_once=2,  # max_concurrent_genomes
        requests_per_minute=60_000,  # rate_limit_per_minute
        log=tmp_path / "run.jsonl",
        progress=False,
        workers=1,
    )
    assert log.best_fitness == log.trajectory[-1]  # results["best_fitness"]
    assert log.seconds is not None  # results["total_time"]
    assert log.seconds > 0


def test_the_presets() -> None:
    stated = {name: (p.max_concurrent, p.problems_per_batch) for name, p in PRESETS.items()}
    assert stated == {"conservative": (5, 10), "balanced": (10, 20), "aggressive": (15, 30)}
    per_minute = {p.requests_per_minute for p in PRESETS.values()}
    assert per_minute == {2000, 3500}
    assert [p.configurations_per_batch for p in PRESETS.values()] == [5, 10, 15]
    assert [p.configurations_in_flight for p in PRESETS.values()] == [3, 5, 8]


def test_the_benchmark_compares_sequential_with_concurrent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from evo.cli.entry import main

    asked = ["--population", "3", "--problems", "4", "--latency", "0.005,0"]
    assert main(["bench", "--compare", "--model", "offline-2", *asked]) == 0
    _, *passes, last = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in passes] == [
        "sequential",
        "concurrent",
        "from the cache",
    ]
    assert all(" problems/s " in line and " x " in line and " s " in line for line in passes)
    assert [int(line.split()[-6]) for line in passes][:2] == [0, 0]
    hits, every = passes[2].split()[-6], passes[2].split()[-4]
    assert hits == every != "0"
    assert "the same fitness" in last


def test_one_call_at_a_time_gives_the_same_results(tmp_path: Path) -> None:
    runs = [
        evo.run("mmd", generations=2, children=3, max_concurrent=most, progress=False, workers=1,
                log=tmp_path / f"{most}.jsonl")
        for most in (1, 20)
    ]  # fmt: skip
    assert np.array_equal(runs[0].trajectory, runs[1].trajectory)
    assert [c.program for c in runs[0].children] == [c.program for c in runs[1].children]


def test_candidates_for_k_system_prompts_come_in_order() -> None:
    replies = parallel.generate_candidates_parallel("offline-2", PROMPTS, QUERY)
    assert replies == parallel.generate_candidates_parallel("offline-2", PROMPTS, QUERY, 1)
    assert replies == parallel.generate_candidates("offline-2", PROMPTS, QUERY)
    assert len(replies) == len(PROMPTS)
    assert parallel.MOST_WORKERS == 4  # threads where max_workers is None, or fewer: min(K, 4)


def test_map_run_and_score_keep_the_order() -> None:
    assert parallel.map_parallel(len, ["a", "bb", "ccc"]) == [1, 2, 3]
    assert parallel.map_parallel(len, ["a", "bb"], max_workers=1) == [1, 2]
    assert parallel.run_parallel(pow, [(2, 3), (3, 2)]) == [8, 9]
    triples = [("system", "query", "r" * k) for k in (3, 1, 2)]
    scores = parallel.score_batch_parallel(lambda s, q, r: len(r) / 10, triples, max_workers=2)
    assert scores == [0.3, 0.1, 0.2]


def test_several_rubrics_and_several_critics_are_averaged(tmp_path: Path) -> None:
    triples = [("Add.", QUERY, "3 + 4 = 7. Answer: 7"), ("Add.", QUERY, "Answer: 9")]
    rubrics = ["Is the answer right?", "Is the reply complete?"]
    alone = []
    for rubric in rubrics:
        with evo.Critic("offline-2", rubric) as critic:
            alone.append(parallel.score_batch_parallel(critic.score, triples))
    with evo.Critic("offline-2", rubrics) as both:
        scores = parallel.score_batch_parallel(both.score, triples)
        assert len(both.calls) == 4
    means = [pytest.approx(sum(each) / 2) for each in zip(*alone, strict=True)]
    assert scores == means
    with evo.Critic("offline-2", rubrics[0]) as one, evo.Critic("offline-2", rubrics[1]) as other:
        mean = parallel.average([one.score, other.score])
        assert parallel.score_batch_parallel(mean, triples) == means
    log = evo.run(
        "mmd", search="population", model="offline-2", drafts=2,
        critic=evo.Critic("offline-2", rubrics), generations=1, children=2,
        log=tmp_path / "run.jsonl", progress=False, workers=1,
    )  # fmt: skip  # an actor-critic step: K prompts, replies, a critic, fitness
    assert len(log.children) == 2
    again = evo.read_log(log.path)
    assert again.header.critic is not None
    assert rubrics_of(again.header.critic) == tuple(rubrics)
    assert len({call.program for call in again.critic_calls}) % 2 == 0


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[evo.Sweep, list[Any]]:
    events: list[Any] = []
    sweep = evo.sweep(
        {"children": [1, 2], "temperature": {"min": 0.5, "max": 1.0, "step": 0.5}},
        task="mmd", generations=1, seeds=[40], strategy="grid", on_event=events.append,
        log_dir=tmp_path_factory.mktemp("sweeps") / "sweep", progress=False, workers=1,
    )  # fmt: skip
    return sweep, events


def test_a_sweep_states_its_figures(swept: tuple[evo.Sweep, list[Any]]) -> None:
    sweep, _ = swept
    assert (sweep.total_runs, sweep.completed_runs, sweep.failed_runs) == (4, 4, 0)
    assert sweep.total_tokens_in is not None
    assert sweep.total_tokens_out is not None
    logs = [evo.read_log(path) for path in (sweep.folder / "runs").glob("*.jsonl")]
    used = [a.usage or {} for log in logs for child in log.children for a in child.attempts]
    assert sweep.total_tokens_in == sum(each["prompt_tokens"] for each in used)
    assert sweep.total_tokens_out == sum(each["completion_tokens"] for each in used)
    assert sweep.stopped_reason == "completed"


def test_every_event_of_a_sweep_has_completed_and_total(
    swept: tuple[evo.Sweep, list[Any]],
) -> None:
    sweep, events = swept
    assert {event.total for event in events} == {4}
    runs = [event.completed for event in events if event.event == "run_completed"]
    assert runs == [1, 2, 3, 4]
    last = json.loads((sweep.folder / "events.jsonl").read_text().splitlines()[-1])
    assert (last["completed"], last["total"]) == (4, 4)


def test_the_kinds_of_sweeps_and_a_budget_in_tokens(tmp_path: Path) -> None:
    assert {"grid", "random", "guided"} <= set(STRATEGIES)
    sweep = evo.sweep(
        {"children": [1, 2]}, task="mmd", generations=2, seeds=[40], trials=2,
        strategy={"name": "guided", "top_k": 5, "explore_ratio": 0.3}, budget={"tokens": 1},
        log_dir=tmp_path / "sweep", progress=False, workers=1,
    )  # fmt: skip
    assert sweep.stopped_reason == "budget"


def test_a_sweep_is_paused_and_goes_on(tmp_path: Path) -> None:
    first = threading.Event()
    arguments: dict[str, Any] = {
        "task": "mmd", "generations": 20, "seeds": range(40, 43), "progress": False,
        "max_concurrent": 1, "log_dir": tmp_path / "sweep",
    }  # fmt: skip

    def listen(event: Any) -> None:
        if event.event == "run_started":
            first.set()

    handle = evo.start_sweep({"children": [1]}, on_event=listen, **arguments)
    assert first.wait(60)
    handle.pause()
    assert handle.wait(60).stopped_reason == "paused"
    assert evo.sweep({"children": [1]}, **arguments).stopped_reason == "completed"


def test_the_greedy_script(tmp_path: Path) -> None:
    from evo.cli.entry import main

    assert find_model("llama-8b") == find_model("llama-3.1-8b")
    path = tmp_path / "run.jsonl"
    command = "run cp --model offline -T 1 -N 2 --seed 40 -q --workers 1 --log"
    assert main([*command.split(), str(path)]) == 0
    header = evo.read_log(path).header
    assert (header.task.name, header.children, header.seed) == ("circle_packing", 2, 40)


def test_the_bandit_script_and_its_file(tmp_path: Path) -> None:
    from evo.cli.entry import main as evo_main
    from replay.cli.entry import main as replay_main

    live = tmp_path / "live"
    command = (
        "allocate mmd --policy ucb --arms 2 --rounds 4 -N 2 --workers 1 --seed 40 -q --log-dir"
    )
    assert evo_main([*command.split(), str(live)]) == 0
    assert replay_main(["export", "paper", str(live), "-o", str(tmp_path / "paper")]) == 0
    (path,) = (tmp_path / "paper" / "bandit").rglob("*.json")
    bandit = json.loads(path.read_text())
    spent = bandit["flops_per_round"]
    assert len(spent) == bandit["T_total"] == 4
    assert bandit["cumulative_flops"] == pytest.approx(np.cumsum(spent))
    worst = [arm["flops"]["worst_case"]["total_flops"] for arm in bandit["arm_results"]]
    assert bandit["total_flops_worst_case"] == pytest.approx(sum(worst))
    assert sum(spent) == pytest.approx(sum(worst))
    assert bandit["C"] == 4 * 2
    assert bandit["arm_final_fitness"] == [arm["final_fitness"] for arm in bandit["arm_results"]]
    assert bandit["final_best_fitness"] == max(bandit["arm_final_fitness"])
    best = bandit["arm_final_fitness"].index(bandit["final_best_fitness"])
    assert bandit["best_arm_seed"] == bandit["arm_seeds"][best]


THEIRS = """
from openevolve import run_evolution

def evaluate(program_path):
    with open(program_path) as file:
        names = {}
        exec(file.read(), names)
        return {"score": 1.0 / (1.0 + abs(names["solve"](3) - 9)), "runtime": 0.1}

result = run_evolution(
    initial_program='''
        # EVOLVE-BLOCK-START
        def solve(x):
            return x * 2
        # EVOLVE-BLOCK-END
    ''',
    evaluator=evaluate,
    iterations=4,
)
print(result.best_score, result.best_code)
"""

OURS = """
import evo

def evaluate(program_path):
    with open(program_path) as file:
        names = {}
        exec(file.read(), names)
        return {"score": 1.0 / (1.0 + abs(names["solve"](3) - 9)), "runtime": 0.1}

task = evo.task(
    "square", statement="Find the function.",
    initial_program='''
        # EVOLVE-BLOCK-START
        def solve(x):
            return x * 2
        # EVOLVE-BLOCK-END
    ''',
    evaluate=evaluate)
log = evo.run(task, generations=2, children=2, log="openevolve.jsonl")
print(log.best.fitness, log.best.program)
"""

THEIRS_TOO = """
import gepa.optimize_anything as oa
from gepa.optimize_anything import optimize_anything, GEPAConfig, EngineConfig

def evaluate(candidate: str) -> float:
    score, diagnostic = len(set(candidate)), f"{len(candidate)} characters"
    oa.log("Diagnostic:", diagnostic)
    return score

result = optimize_anything(
    seed_candidate="aab",
    evaluator=evaluate,
    objective="Maximise the number of different characters.",
    config=GEPAConfig(engine=EngineConfig(max_metric_calls=4)),
)
print(result.best_candidate)
"""

OURS_TOO = """
import evo

def evaluate(candidate: str) -> float:
    score, diagnostic = len(set(candidate)), f"{len(candidate)} characters"
    return score, f"Diagnostic: {diagnostic}"

task = evo.task(
    "characters",
    initial_program="aab",
    evaluate=evaluate,
    statement="Maximise the number of different characters.",
)
log = evo.run(task, budget={"calls": 4}, children=2, feedback=True, log="gepa.jsonl")
print(log.best.program)
"""


@pytest.mark.parametrize(("theirs", "ours"), [(THEIRS, OURS), (THEIRS_TOO, OURS_TOO)])
def test_quick_starts_of_other_tools_take_no_more_lines_here(
    theirs: str, ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    compile(theirs, "theirs", "exec")
    assert len(ours.strip().splitlines()) <= len(theirs.strip().splitlines())
    name = f"<ipython-input-{hash(ours)}>"
    linecache.cache[name] = (len(ours), None, ours.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "quick_start"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without combined_score the fitness is a mean, as there
        exec(compile(ours, name, "exec"), names)
        assert names["task"].evaluate().status == "ok"
        assert evo.rerun(names["log"].path).same
    log = names["log"]
    assert len(log.children) == 4
    assert log.best.fitness == log.best.evaluation.fitness


def test_the_arguments_of_run_evolution(tmp_path: Path) -> None:
    def by_path(program_path: str) -> dict[str, float]:
        with open(program_path) as file:
            return {"combined_score": float(len(file.read())), "runtime": 0.1}

    lines = ["# EVOLVE-BLOCK-START", "def solve(x):", "    return x", "# EVOLVE-BLOCK-END"]
    (tmp_path / "program.py").write_text("\n".join(lines) + "\n")
    given = {"evaluate": by_path, "statement": "Longer is better."}
    text = evo.task("t", initial_program="\n".join(lines) + "\n", **given)
    assert evo.task("t", initial_program=tmp_path / "program.py", **given).record == text.record
    options = {"children": 2, "log": tmp_path / "out.jsonl", "progress": False}
    log = evo.run(text, generations=3, target=1.0, **options)
    assert not log.children  # the initial program reaches the target
    assert log.best.evaluation.metrics == {"runtime": 0.1}
    longer = evo.run(text, generations=2, search="population", children=2,
                     log=tmp_path / "b.jsonl", progress=False)  # fmt: skip
    again = evo.run(text, generations=2, search=Population(), children=2,
                    log=tmp_path / "b.jsonl", progress=False)  # fmt: skip
    assert [c.program for c in again.children] == [c.program for c in longer.children]


def test_the_arguments_of_optimize_anything(tmp_path: Path) -> None:
    def runs_itself(text: str) -> tuple[float, str]:
        names: dict[str, Any] = {}
        exec(text, names)
        return float(names["f"](2)), "ran"

    def holds(reply: str, row: dict[str, str]) -> bool:
        return row["answer"] in reply

    code = evo.task("code", initial_program="def f(x):\n    return x + 1\n", evolves="text",
                    evaluate=runs_itself, statement="Objective.\n\nBackground.")  # fmt: skip
    found = code.evaluate()
    assert (found.fitness, found.notes) == (3.0, "ran")
    rows = [{"prompt": f"What is {k} plus 1?", "answer": str(k + 1)} for k in range(3)]
    held_out = [{"prompt": "What is 7 plus 1?", "answer": "8"}]
    asked = evo.task("asked", initial_program="Answer.", evaluate=holds, instances=rows,
                     held_out=held_out, statement="Answer sums.")  # fmt: skip
    log = evo.run(asked, budget={"calls": 12}, children=1, generations=9, search="pareto",
                  log=tmp_path / "a.jsonl", progress=False)  # fmt: skip
    assert len(log.generations) < 9
    assert all(len(child.evaluation.instances) in (0, 3) for child in log.children)


def test_islands_and_a_search_of_ones_own_select(tmp_path: Path) -> None:
    for search in (evo.searches.Islands(), Population(size=2)):
        log = evo.run("mmd", search=search, generations=1, children=2, progress=False,
                      log=tmp_path / f"{search.name}.jsonl")  # fmt: skip
        assert log.header.search is not None
        assert log.header.search.name == search.name


def test_several_texts_are_files_and_no_candidate_is_refused_in_words() -> None:
    given: dict[str, Any] = {"evaluate": lambda text: 1.0, "statement": "s"}
    task = evo.task("t", initial_program={"a.txt": "x", "b.txt": "y"}, **given)
    assert evo.unpack(task.initial_program) == {"a.txt": "x\n", "b.txt": "y\n"}
    with pytest.raises(ValueError, match="initial_program: expected a function"):
        evo.task("t", initial_program=None, **given)


def test_a_reflection_model_is_a_function(tmp_path: Path) -> None:
    def reflects(messages: Any) -> str:
        assert "scored 2" in messages[-1]["content"]  # (score, info), shown with feedback=True
        return "```\naabc\n```"

    task = evo.task("t", initial_program="aab", statement="Use many letters.",
                    evaluate=lambda text: (len(set(text)), f"scored {len(set(text))}"))  # fmt: skip
    log = evo.run(task, model=reflects, generations=1, children=2, feedback=True,
                  log=tmp_path / "a.jsonl", progress=False)  # fmt: skip
    assert log.best.fitness == 4  # with the line's end


def test_the_options_of_the_command(tmp_path: Path) -> None:
    from evo.cli.entry import main

    path = tmp_path / "run.jsonl"
    command = (
        "run wp --instances 6 --model offline-2 --search population --search-set size=4 -T 1 -N 2 "
        "--first-batch 4 --max-concurrent 10 --texts-at-once 2 --rpm 35000 -q --seed 40 --log"
    )
    assert main([*command.split(), str(path)]) == 0
    log = evo.read_log(path)
    assert log.header.search is not None
    assert log.header.search.fields["size"] == 4
    assert (log.header.batches, log.header.children, log.header.seed) == (4, 2, 40)
    session = log.sessions[-1]
    assert (session.max_concurrent, session.requests_per_minute) == (10, 35_000)
    preset = tmp_path / "preset.jsonl"
    command = "run wp --instances 2 --model offline-2 -T 1 -N 1 --preset balanced -q --log"
    assert main([*command.split(), str(preset)]) == 0
    assert evo.read_log(preset).sessions[-1].preset == "balanced"


TESTED = {
    '`initial_program="..."': test_the_arguments_of_run_evolution,
    "`evaluator=f`, which is given `pro": test_the_arguments_of_run_evolution,
    "`iterations=100`": test_quick_starts_of_other_tools_take_no_more_lines_here,
    "`target_score=0.9`": test_the_arguments_of_run_evolution,
    '`output_dir="out"`': test_the_arguments_of_run_evolution,
    "`checkpoint_path=`": test_the_arguments_of_run_evolution,
    "`result.best_code`, `b": test_quick_starts_of_other_tools_take_no_more_lines_here,
    "`island_selector`, `po": test_islands_and_a_search_of_ones_own_select,
    '`seed_candidate="..."`': test_several_texts_are_files_and_no_candidate_is_refused_in_words,
    "no `seed_candidate`": test_several_texts_are_files_and_no_candidate_is_refused_in_words,
    "`evaluator=f`, which is given the ": test_the_arguments_of_optimize_anything,
    "`(score, info)`, `oa.l": test_a_reflection_model_is_a_function,
    "`dataset=rows`": test_the_arguments_of_optimize_anything,
    "`valset=rows`": test_the_arguments_of_optimize_anything,
    "`objective=`, `backgro": test_the_arguments_of_optimize_anything,
    "`EngineConfig(max_metr": test_the_arguments_of_optimize_anything,
    "`ReflectionConfig(refl": test_a_reflection_model_is_a_function,
    "`candidate_selection_s": test_the_arguments_of_optimize_anything,
    "`result.best_candidate": test_quick_starts_of_other_tools_take_no_more_lines_here,
    "`select_best(parallel=": test_select_best_parallel_and_max_concurrent,
    "`n_combo`, `dp_concurr": test_the_two_level_split_of_plan_concurrency,
    "brute force, random se": test_every_way_to_choose_is_a_selector,
    "`population_size=50`": test_the_options_of_the_command,
    "`max_generations=100`": test_the_options_of_the_command,
    "`async_batch_size=20`": test_the_options_of_the_command,
    "`max_concurrent_reques": test_the_options_of_the_command,
    "`max_concurrent_genome": test_the_options_of_the_command,
    "`rate_limit_per_minute": test_the_options_of_the_command,
    "`enable_async_evaluati": test_one_call_at_a_time_gives_the_same_results,
    "conservative, balanced": test_the_presets,
    '`results["best_fitness': test_the_fields_of_the_evolution_configuration,
    "`PerformanceBenchmark`": test_the_benchmark_compares_sequential_with_concurrent,
    "`generate_candidates(.": test_candidates_for_k_system_prompts_come_in_order,
    "`map_parallel(fn, item": test_map_run_and_score_keep_the_order,
    "`score_batch_parallel(": test_map_run_and_score_keep_the_order,
    "several scorers, avera": test_several_rubrics_and_several_critics_are_averaged,
    "`HybridOptimizationFlo": test_several_rubrics_and_several_critics_are_averaged,
    "`SweepConfig(sweep_typ": test_the_kinds_of_sweeps_and_a_budget_in_tokens,
    "`SweepResult`": test_a_sweep_states_its_figures,
    "pause, resume, stop": test_a_sweep_is_paused_and_goes_on,
    "an event per run": test_every_event_of_a_sweep_has_completed_and_total,
    "`run_greedy.py --task ": test_the_greedy_script,
    "`run_bandit.py --algo ": test_the_bandit_script_and_its_file,
    "the bandit JSON": test_the_bandit_script_and_its_file,
}
"""The test that runs each row of the page, by how the row begins."""


def test_every_row_is_run_by_a_test() -> None:
    heads = ("elsewhere", "`AsyncEvolutionConfig`", "`run_evolution(", "`optimize_anything(")
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [line.split("|")[1].strip() for line in lines]
    rows = [cell for cell in cells if not cell.startswith(heads)]
    assert len(rows) == len(TESTED)
    assert all(row.startswith(beginning) for row, beginning in zip(rows, TESTED, strict=True))


@pytest.mark.thorough
def test_the_page_names_what_runs_here() -> None:
    text = PAGE.read_text()
    for name in (
        "select_best", "plan_concurrency", "SELECTORS", "texts_at_once", "--preset",
        "best_fitness", "bench --compare", "generate_candidates_parallel", "map_parallel",
        "run_parallel", "score_batch_parallel", "parallel.average", "total_tokens_in",
        "stopped_reason", "flops_per_round", "llama-8b",
    ):  # fmt: skip
        assert name in text, name
