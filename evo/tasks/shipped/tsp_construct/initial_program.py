import numpy as np


def next_city(current, start, unvisited, distance):
    """Return the city to visit next, one of the list `unvisited`."""
    near = distance[current][unvisited]
    home = distance[start][unvisited]
    onward = distance[unvisited][:, unvisited].mean(axis=1)
    cost = 1.0 * near + 1.0 * home + 1.0 * onward
    return unvisited[np.argmin(cost)]
