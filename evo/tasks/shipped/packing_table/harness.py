# Runs after the program, in its process: puts each item where its rule says.
import numpy as np


def pack(items: list[int]) -> list[int]:
    rule = globals()["priority"]
    room = np.full(len(items) + 1, 100.0)
    used, packed = 0, []
    for item in items:
        fitting = np.flatnonzero(room[: used + 1] >= item)
        wishes = np.asarray(rule(float(item), room[fitting]), dtype=float)
        if wishes.shape != fitting.shape or np.isnan(wishes).any():
            raise ValueError(f"expected {len(fitting)} numbers, got shape {wishes.shape}")
        chosen = int(fitting[wishes.argmax()])
        room[chosen] -= item
        used = max(used, chosen + 1)
        packed.append(chosen)
    return packed
