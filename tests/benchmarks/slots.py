"""How much of 16 slots a run uses with and without a barrier, on a clock that is simulated.

    python tests/benchmarks/slots.py [replicates]

The machine of a run is driven as a session drives it, with calls of lognormal length in place of
a model and a made-up gain in place of evaluations. It prints, for each spread of the lengths, the
share of the slots that is in use until the last call is over, the time against that with a barrier,
and the best fitness. Nothing depends on the machine that it runs on.
"""

import heapq
import itertools
import random
import statistics
import sys

import evo
from evo.logs.records import Attempt, Evaluation, Header, Initial
from evo.models.client import Call
from evo.runs import items
from evo.runs.ask import OneCall
from evo.runs.configuration import make_header
from evo.runs.evaluate import DrawEvaluator, Evaluate
from evo.runs.loop import Machine, Steps
from evo.runs.planning import Planner
from evo.runs.state import State
from evo.runs.steady import machine_of

SLOTS = CHILDREN = 16
GENERATIONS = 32


def prepared(header: Header) -> tuple[Machine, Steps]:
    """Returns the machine of a run and the steps that it takes."""
    state = State(header)
    machine = machine_of(state, window=SLOTS)
    machine.log(Initial(evaluation=Evaluation(status="ok", fitness=0.0)))
    steps = Steps(
        plan=Planner(),
        ask=OneCall(header, machine.log),
        evaluate=Evaluate(DrawEvaluator(header, lambda *_, **__: Evaluation(status="error"))),
    )
    return machine, steps


def drive(header: Header, seed: int, spread: float) -> tuple[float, float, float]:
    """Drives a run; returns seconds, the share of slots used, and the best fitness."""
    luck, numbers = random.Random(seed), itertools.count()
    machine, steps = prepared(header)
    clock = busy = 0.0
    flying: list[tuple[float, int, items.CallItem]] = []
    fitness = {header.task.files[header.task.program_file].strip(): 0.0}
    begun = 0
    while True:
        while begun < GENERATIONS and (machine.idle or machine.wants_more):
            machine.begin(steps)
            begun += 1
        for item in machine.ask(SLOTS - len(flying)):
            if isinstance(item, items.DrawItem):
                value = fitness[item.program.strip()]
                machine.tell(item, Evaluation(status="ok", fitness=value))
                continue
            assert isinstance(item, items.CallItem)
            length = luck.lognormvariate(0, spread)
            busy += length
            heapq.heappush(flying, (clock + length, next(numbers), item))
        if machine.idle and begun == GENERATIONS:
            break
        if machine.ready or not flying:
            continue
        clock, number, call = heapq.heappop(flying)
        gain = luck.choice([0, 0, 0, 0.02]) * luck.random()
        program = f"x = {number}"
        fitness[program] = min(1.0, fitness[call.prompt.program.strip()] + gain)
        reply = f"```python\n{program}\n```"
        machine.tell(call, Call((Attempt(status="ok", latency=None),), reply))
    assert machine.failure is None
    assert machine.state.generation == GENERATIONS
    return clock, busy / (clock * SLOTS), machine.state.best_fitness or 0.0


def main(replicates: int) -> None:
    """Prints the table."""
    print("spread  barrier: used  best   none: used  best   time with none")
    for spread in (0.5, 1.0, 1.5):
        rows = []
        for asynchronous in (False, True):
            found = []
            for seed in range(replicates):
                header = make_header(
                    evo.load_task("mmd"), children=CHILDREN, seed=seed, search="population",
                    asynchronous=asynchronous,
                )  # fmt: skip
                found.append(drive(header, seed, spread))
            rows.append([statistics.mean(column) for column in zip(*found, strict=True)])
        (slow, idle, base), (quick, used, best) = rows
        print(
            f"{spread:6.1f}  {idle:13.0%}  {base:.3f}  {used:10.0%}  {best:.3f}"
            f"  {quick / slow:15.0%}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
