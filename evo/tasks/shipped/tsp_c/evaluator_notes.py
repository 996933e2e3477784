"""What a model is told of a tour: which steps cost most, and how far it is from the best."""

import math
from typing import Any

SHOWN = 4


def notes(value: list[int], instance: dict[str, Any]) -> str:
    cities = instance["input"]
    steps = list(zip(value, [*value[1:], value[0]], strict=True))
    length = {step: math.dist(cities[step[0]], cities[step[1]]) for step in steps}
    longest = sorted(steps, key=lambda step: -length[step])[:SHOWN]
    total = math.fsum(length.values())
    told = []
    for here, there in longest:
        near = min(math.dist(cities[here], city) for k, city in enumerate(cities) if k != here)
        place = value.index(here) + 1
        told.append(
            f"from city {here} to {there} (step {place}): {length[here, there]:.4g}, "
            f"its nearest city is {near:.4g} away"
        )
    more = total / float(instance["optimum"]) - 1
    return f"the tour is {more:.1%} longer than the shortest; dearest steps: {'; '.join(told)}"
