"""The bar: ten runs of each task play again to the same statuses and fitness."""

from pathlib import Path

import pytest

import evo
import evo.runs.planning


@pytest.mark.slow
@pytest.mark.parametrize("task", ["cp", "mmd", "ht"])
def test_runs_are_reproduced(task: str, tmp_path: Path) -> None:
    logs = evo.run_many(
        task, seeds=range(40, 43), generations=6, children=8, log_dir=tmp_path, progress=False
    )
    for log in logs:
        outcome = evo.rerun(log)
        assert outcome.same, str(outcome)
        assert outcome.evaluations == 49


def test_differing_prompt_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = evo.run(
        "mmd", generations=2, children=2, seed=1, log=tmp_path / "a.jsonl", progress=False
    )
    original = evo.runs.planning.build_messages
    monkeypatch.setattr(
        evo.runs.planning,
        "build_messages",
        lambda *given, **told: [*original(*given, **told), {"role": "user", "content": "Think."}],
    )
    outcome = evo.rerun(log)
    assert len(outcome.differing_prompts) == 4
    assert not outcome.differences
    assert not outcome.same
    assert "4 prompts differ" in str(outcome)
