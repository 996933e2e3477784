# Runs after the program, in its process: makes the tour that its rule leads to.
import numpy as np


def build_tour(cities: list[list[float]]) -> list[int]:
    points = np.array(cities)
    distance = np.hypot(*(points[:, None] - points[None]).T)
    rule = globals().get("next_city") or globals()["choose"]
    tour, free = [0], list(range(1, len(points)))
    while free:
        city = int(rule(tour[-1], 0, list(free), distance.copy()))
        if city not in free:
            raise ValueError(f"chose {city}, which is not one of those that are left")
        free.remove(city)
        tour.append(city)
    return tour
