"""`evo tasks` and `evo models`."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import call

from evo.models.registry import load_models
from evo.tasks.task import load_task, shipped_tasks


def rows_of(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The printed lines by their first word."""
    return {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}


def test_every_shipped_task_is_listed_with_its_other_names_and_its_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("tasks") == 0
    rows = rows_of(capsys)
    assert shipped_tasks().keys() <= rows.keys()
    for name, config in shipped_tasks().items():
        seconds = load_task(name).limits.seconds
        assert f"{', '.join(config.aliases)} " in rows[name]
        assert f" {seconds:g} " in rows[name]
        assert rows[name].endswith(config.title)
        for alias in config.aliases:
            assert load_task(alias).name == load_task(name).name


def test_every_known_model_is_listed_a_users_too_and_what_is_unknown_is_left_empty(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "models.toml"
    file.write_text(
        "[mine]\nbase_url = 'http://localhost:1/v1'\nactive_parameters = 1234567\n"
        "input_price = 0.25\noutput_price = 3.5\n[bare]\nbase_url = 'http://localhost:1/v1'\n"
    )
    monkeypatch.setenv("EVO_MODELS", str(file))
    assert call("models") == 0
    rows = rows_of(capsys)
    assert load_models().keys() <= rows.keys()
    assert rows["mine"].split()[1:] == ["1,234,567", "0.25", "3.5"]
    assert rows["bare"].split() == ["bare"]
    for name, model in load_models().items():
        assert rows[name].endswith("not an LLM") == (not model.is_llm)


def test_a_price_that_is_not_stated_is_that_of_the_provider(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("genai_prices")
    file = tmp_path / "models.toml"
    file.write_text("['gpt-4o']\nbase_url = 'https://api.openai.com/v1'\n")
    monkeypatch.setenv("EVO_MODELS", str(file))
    assert call("models") == 0
    assert rows_of(capsys)["gpt-4o"].split()[1:] == ["128,000", "2.5", "10"]
