"""What a model is told of a packing: which circles overlap or stick out, and where room is left."""

import numpy as np

TOLERANCE = 1e-6
SHOWN = 4


def notes(value: list[list[object]]) -> str:
    centers, radii = np.asarray(value[0], dtype=float), np.asarray(value[1], dtype=float)
    first, second = np.triu_indices(len(radii), 1)
    gap = np.hypot(*(centers[first] - centers[second]).T) - radii[first] - radii[second]
    wall = np.minimum(centers, 1 - centers).min(axis=1) - radii
    lines = []
    if (bad := np.flatnonzero(gap < -TOLERANCE)).size:
        worst = bad[np.argsort(gap[bad], kind="stable")][:SHOWN]
        pairs = [f"{first[k]} and {second[k]} by {-gap[k]:.4g}" for k in worst]
        lines.append(f"{bad.size} pairs of circles overlap, most: {', '.join(pairs)}")
    if (bad := np.flatnonzero(wall < -TOLERANCE)).size:
        worst = bad[np.argsort(wall[bad], kind="stable")][:SHOWN]
        lines.append(
            f"{bad.size} circles leave the square, most: "
            + ", ".join(f"{k} by {-wall[k]:.4g}" for k in worst)
        )
    if not lines:
        room = wall.copy()
        np.minimum.at(room, first, gap)
        np.minimum.at(room, second, gap)
        free = np.argsort(-room, kind="stable")[:SHOWN]
        small = np.argsort(radii, kind="stable")[:SHOWN]
        lines.append("smallest radii: " + ", ".join(f"{k}: {radii[k]:.4g}" for k in small))
        lines.append(
            f"{(room <= TOLERANCE).sum()} of {len(radii)} circles touch something; "
            "these could grow alone by: " + ", ".join(f"{k}: {room[k]:.4g}" for k in free)
        )
    return "\n".join(lines)
