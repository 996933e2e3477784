"""Runs that end in several ways, each alone."""

import pytest
from sweep_spaces import ENDS

import evo


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], evo.Log]:
    """Runs with each of `ENDS`, by its number and the seed."""
    folder = tmp_path_factory.mktemp("alone")
    return {
        (k, seed): evo.run(
            "mmd", generations=6, children=1, seed=seed, log=folder / f"{k}-{seed}",
            progress=False, **goal,
        )
        for k, goal in enumerate(ENDS) for seed in (1, 2)
    }  # fmt: skip
