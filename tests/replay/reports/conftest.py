"""Logs that reports are made of."""

import pytest
from samples import write_sample


@pytest.fixture
def logs(tmp_path):
    """A folder of six small logs."""
    for seed in range(6):
        write_sample(tmp_path / "logs" / f"{seed}.jsonl", seed=seed)
    return tmp_path / "logs"
