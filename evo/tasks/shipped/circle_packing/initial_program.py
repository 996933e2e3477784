"""26 circles in the unit square: one in the middle, a ring of 8, a ring of 16."""

import numpy as np


def construct_packing():
    """Return (centers, radii, sum of radii) of 26 circles in the unit square."""
    centers = np.zeros((26, 2))
    centers[0] = [0.5, 0.5]
    for i in range(8):
        angle = 2 * np.pi * i / 8
        centers[i + 1] = [0.5 + 0.3 * np.cos(angle), 0.5 + 0.3 * np.sin(angle)]
    for i in range(16):
        angle = 2 * np.pi * i / 16
        centers[i + 9] = [0.5 + 0.7 * np.cos(angle), 0.5 + 0.7 * np.sin(angle)]
    centers = np.clip(centers, 0.01, 0.99)
    radii = compute_max_radii(centers)
    return centers, radii, np.sum(radii)


def compute_max_radii(centers):
    """Return radii that keep circles at these centers inside the square and apart."""
    radii = np.minimum(centers, 1 - centers).min(axis=1)
    for i in range(len(centers)):
        for j in range(i + 1, len(centers)):
            distance = np.sqrt(np.sum((centers[i] - centers[j]) ** 2))
            if radii[i] + radii[j] > distance:
                scale = distance / (radii[i] + radii[j])
                radii[i] *= scale
                radii[j] *= scale
    return radii
