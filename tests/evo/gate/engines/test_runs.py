"""What identifies the run of an engine, and what such a run cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import evo
from evo.gate.engines.runs import EngineRun, engine_run

MMD = evo.load_task("mmd")


@pytest.fixture(autouse=True)
def toy(own_engines: None) -> None:
    """An engine that any Python has."""
    evo.register_engine(evo.Engine("toy", lambda job: []))


def made(common: dict[str, object] | None = None, *, pulls: int = 3, **fields: object) -> EngineRun:
    return engine_run(MMD, {"engine": "toy", **fields}, common or {}, pulls=pulls)


def test_its_header_names_the_engine_and_its_calls_are_those_of_all_pulls() -> None:
    run = made(children=4, seed=7)
    assert (run.header.source, run.header.children, run.header.seed) == ("toy", 4, 7)
    assert run.header.prompt_version == 0  # the engine words its prompts
    assert run.calls == 3 * 4
    assert run.python == sys.executable


def test_what_an_arm_states_goes_before_what_all_runs_share() -> None:
    shared = {"children": 2, "seed": 1}
    assert made(shared).header == made(children=2, seed=1).header
    assert made(shared, children=5).header == made(children=5, seed=1).header


def test_what_runs_share_and_no_engine_heeds_is_left_out_but_an_arm_may_not_state_it() -> None:
    assert made({"drafts": 2, "feedback": True}).header == made().header
    with pytest.raises(ValueError, match="arm of engine toy: 'drafts' means nothing for an engine"):
        made(drafts=2)


def test_an_engine_samples_as_it_does_unless_its_own_arm_says_how() -> None:
    plain = made({"temperature": 0.3, "top_p": 0.5, "max_tokens": 99}).header.sampling
    assert plain == made().header.sampling
    assert (plain.temperature, plain.top_p, plain.max_tokens) == (None, None, None)
    assert made(temperature=0.3).header.sampling.temperature == 0.3
    with pytest.raises(ValueError, match="temperature: expected a number in"):
        made(temperature=9)


def test_whole_programs_are_asked_for_by_a_switch_that_the_log_mentions() -> None:
    assert made(full_rewrites=True).full_rewrites
    assert "replies are whole programs" in (made(full_rewrites=True).header.lost or "")
    assert made(full_rewrites=False).header == made().header
    with pytest.raises(TypeError, match=r"full_rewrites: expected True .* got the text 'False'"):
        made(full_rewrites="False")


@pytest.mark.parametrize("patience", [0, -1.0, float("nan"), True, "3"])
def test_patience_is_a_number_of_seconds_above_0(patience: object) -> None:
    assert made(patience=3).patience == 3.0
    assert made(patience=float("inf")).patience == float("inf")
    with pytest.raises(ValueError, match="patience: expected seconds above 0, got"):
        made(patience=patience)


def test_the_python_of_an_environment_is_named_by_its_own_path(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert made(python=link).python == str(link)
    with pytest.raises(evo.EngineError, match="cannot be run"):
        made(python=tmp_path / "none")


@pytest.mark.parametrize(
    "task",
    [
        evo.load_task("word_problems"),
        evo.task("files", initial_program={"a.py": "def f():\n    return 1\n", "b.txt": "1"},
                 evaluate=float, statement="More."),
    ],
    ids=lambda task: task.name,
)  # fmt: skip
def test_programs_that_are_no_single_python_file_are_refused(task: evo.Task) -> None:
    with pytest.raises(evo.EngineError, match=f"{task.name}: engines expect a task whose programs"):
        engine_run(task, {"engine": "toy"}, {}, pulls=1)
