"""A program whose value is a draw, and what stands in for the sandbox of such programs."""

import math
import random

from evo.logs.records import Evaluation

PROGRAM = """import random


def value():
    return {gain} + random.gauss(0, 1) + 0 * {mark}
"""


class Lottery:
    """Stands in for the sandbox: a program's name states its mean; luck is its own or common."""

    def __init__(self, common: float = 0.0) -> None:
        self.common, self.seen = common, []

    def evaluate(self, task, program, limits, *, draw=0, seed=0) -> Evaluation:
        self.seen.append(draw)
        own = random.Random(f"{program}/{seed}/{draw}").gauss(0, 1)
        shared = random.Random(f"{seed}/{draw}").gauss(0, 1)
        luck = math.sqrt(1 - self.common) * own + math.sqrt(self.common) * shared
        return Evaluation(status="ok", fitness=float(program.partition("/")[0]) + luck)
