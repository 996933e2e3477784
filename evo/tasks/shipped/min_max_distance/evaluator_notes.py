"""What a model is told of points: which pairs are closest, and which are farthest apart."""

import numpy as np
import numpy.typing as npt

SHOWN = 3


def notes(value: list[list[float]]) -> str:
    points = np.asarray(value, dtype=float)
    first, second = np.triu_indices(len(points), 1)
    distance = np.hypot(*(points[first] - points[second]).T)
    order = np.argsort(distance, kind="stable")

    def told(pairs: npt.NDArray[np.intp]) -> str:
        return ", ".join(f"{first[k]} and {second[k]}: {distance[k]:.5g}" for k in pairs)

    return f"closest points: {told(order[:SHOWN])}\nfarthest points: {told(order[::-1][:SHOWN])}"
