"""What planning costs at 10,000 children in the archive, milliseconds of CPU a child.

    python tests/benchmarks/planning.py

Each search plans its own archive, 100 generations of 100 children of random fitness; then the
planner plans one more generation, prompts with three inspirations and feedback included.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "evo" / "searches"))

from tree import Tree

from evo.configuration import make_header
from evo.keyed import KeyedStream
from evo.log import Best
from evo.records import Evaluation
from evo.runs.planning import Planner
from evo.searches import BestOfN, Greedy, Islands, Population, Search

GENERATIONS, CHILDREN = 100, 100


def milliseconds_a_child(search: Search) -> float:
    """Returns the CPU time of planning generation 101, by child."""
    header = make_header(
        "mmd", children=CHILDREN, search=search, inspirations=3, feedback=True, seed=1
    )
    planner = Planner([header], lambda text: {})
    first = Evaluation(status="ok", fitness=0.0)
    best = Best("p = 0", first, 0, 0)
    planner.remember((0, 0), "p = 0", first)
    draws = KeyedStream("fitness")
    for number in range(1, GENERATIONS + 1):
        asked = planner.plan(number, best)
        for index in range(CHILDREN):
            fitness = draws.uniform(0, 1)
            tried = Evaluation(status="ok", fitness=fitness)
            program = f"p = {number} + {index}\n" * 40
            parents = asked[index].planned.parents
            planner.remember((number, index), program, tried, parents)
            if fitness > (best.evaluation.fitness or 0.0):
                best = Best(program, tried, number, index)
    began = time.process_time()
    planner.plan(GENERATIONS + 1, best)
    return 1e3 * (time.process_time() - began) / CHILDREN


def main() -> None:
    """Prints a line for each search."""
    for search in (Greedy(), BestOfN(), Population(), Population(size=1000), Islands(), Tree()):
        print(f"{search.name:12} {milliseconds_a_child(search):7.3f} ms a child")


if __name__ == "__main__":
    main()
