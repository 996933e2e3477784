"""The tasks whose programs are rules, tried on instances: harness, evaluator and references."""

import json
import math
import tomllib
from pathlib import Path

import pytest

from evo.tasks.task import TaskError, load_task

TASKS = Path(__file__).parents[3] / "evo" / "tasks" / "shipped"
RULES = ("tsp_construct", "online_bin_packing", "circle_grid")
REFERENCES = {  # by the name in task.toml
    "tsp_construct": {
        "nearest_neighbour": "return unvisited[int(distance[current][unvisited].argmin())]",
        "best_known_rule": """
    free = distance[unvisited]
    cost = distance[current][unvisited] - 0.2 * free[:, start] - 0.8 * free[:, unvisited].mean(1)
    return unvisited[int(cost.argmin())]""",
    },
    "online_bin_packing": {
        "first_fit": "return -np.arange(len(room))",
        "best_fit": "return item - room",
        "funsearch": """
    largest = max(room)
    score = (room - largest) ** 2 / item + room**2 / item**2 + room**2 / item**3
    score[room > item] = -score[room > item]
    score[1:] -= score[:-1]
    return score""",
        "best_known_rule": """
    left = room - item
    return -left - 100.0 * ((left > 2) & (left < 35))""",
    },
    "circle_grid": {
        "square_grid": """
    side = math.ceil(math.sqrt(n))
    radius = 1 / (2 * side)
    return [(radius * (2 * (i % side) + 1), radius * (2 * (i // side) + 1), radius)
            for i in range(n)]""",
    },
}
SIGNATURES = {
    "tsp_construct": "next_city(current, start, unvisited, distance)",
    "online_bin_packing": "priority(item, room)",
    "circle_grid": "pack(n)",
}


def instances(name):
    lines = (TASKS / name / "instances.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def run(name, program):
    """Search and check fitness of a program, without the sandbox."""
    task = load_task(name).record
    space, evaluator = {}, {}
    exec(program, space)
    exec(task.files.get(task.harness_file, ""), space)
    exec(task.files[task.evaluator_file], evaluator)
    entry = next(space[each] for each in task.entry if each in space)
    scores = {False: [], True: []}
    for instance in instances(name):
        value = json.loads(json.dumps(entry(instance["input"])))
        scores[bool(instance.get("check"))].append(evaluator["score"](value, instance))
    return tuple(math.fsum(each) / len(each) for each in scores.values())


@pytest.mark.parametrize(("name", "rule"), [(n, r) for n in RULES for r in REFERENCES[n]])
def test_references_are_what_the_rules_score(name, rule):
    body = REFERENCES[name][rule].strip("\n")
    body = body if body.startswith("    ") else f"    {body}"
    program = f"import math\nimport numpy as np\n\ndef {SIGNATURES[name]}:\n{body}\n"
    stated = tomllib.loads((TASKS / name / "task.toml").read_text())["references"]
    fitness, check = run(name, program)
    assert fitness == pytest.approx(stated[rule], abs=5e-5)
    assert check == pytest.approx(fitness, abs=0.05)  # a rule is not made for the instances


@pytest.mark.parametrize("name", RULES)
def test_the_start_is_weak_and_the_same_in_other_words(name):
    stated = tomllib.loads((TASKS / name / "task.toml").read_text())["references"]
    plain, renamed = load_task(name), load_task(f"{name}:renamed")
    assert renamed.name == f"{name}-renamed"
    assert renamed.record.hash != plain.record.hash
    words = set(plain.initial_program.split()) & {
        "next_city(current,",
        "priority(item,",
        "pack(n):",
    }
    assert not words & set(renamed.initial_program.split())
    start = run(name, plain.initial_program)
    assert run(name, renamed.initial_program) == pytest.approx(start)
    assert start[0] < min(stated.values())


@pytest.mark.parametrize("name", RULES)
def test_check_instances_are_others(name):
    search = [each["input"] for each in instances(name) if not each.get("check")]
    check = [each["input"] for each in instances(name) if each.get("check")]
    assert len(search) > 2
    assert len(check) >= 2
    assert not any(each in search for each in check)
    assert "check_fitness" in load_task(name).record.private


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tsp_construct", [0, 1]),
        ("tsp_construct", [0] * 50),
        ("tsp_construct", None),
        ("online_bin_packing", [0]),
        ("online_bin_packing", [0] * 1200),
        ("circle_grid", [[0.5, 0.5, 0.6]] * 17),
        ("circle_grid", [[0.5, 0.5, 0.1]] * 17),
        ("circle_grid", [[0.5, 0.5, float("nan")]] * 17),
        ("circle_grid", [[0.5, 0.5, -0.1]] * 17),
        ("circle_grid", []),
    ],
)
def test_what_is_not_legal_is_refused(name, value):
    space = {}
    exec((TASKS / name / "evaluator.py").read_text(), space)
    with pytest.raises(ValueError, match=r"expected|overlap|leaves|holds"):
        space["score"](value, instances(name)[0])


def test_the_optimum_of_a_tour_is_proven():
    import numpy as np

    space = {"__name__": "generate"}
    exec((TASKS / "tsp_construct" / "generate.py").read_text(), space)
    angles = np.random.default_rng(0).permutation(12) * 2 * np.pi / 12
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert space["shortest"](ring) == pytest.approx(24 * math.sin(math.pi / 12))
    first = instances("tsp_construct")[0]
    assert space["shortest"](np.array(first["input"])) == pytest.approx(first["optimum"])


def test_an_unknown_wording_is_refused():
    with pytest.raises(TaskError, match="renamed"):
        load_task("tsp:plain")
