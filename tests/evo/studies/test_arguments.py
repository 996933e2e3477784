"""Arguments of studies that are of another type than they have to be are named in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
from evo.plugins import MistakenType

WRONG: list[Any] = [1.5, True, Path("nowhere"), b"x", [1.0], [None], {1: 2}]


def agent(row: object, words: int) -> float:
    return 0.5


def selected(folder: Path, **given: Any) -> str:
    how: dict[str, Any] = {"choices": {"words": [1, 5]}, "evaluate": agent, "data": [1, 2]}
    made = evo.select_best(**{**how, **given}, log_dir=folder, progress=False)
    return repr(made)


def allocated(folder: Path, **given: Any) -> list[int]:
    how: dict[str, Any] = {"arms": 2, "rounds": 2, "children": 1}
    how |= {"log_dir": folder, "progress": False}
    return evo.allocate_live("mmd", "round_robin", **{**how, **given}).pulls.tolist()


NAMED = ["choices", "parameters", "orders", "base", "budget"]
"""What has names; what `choices` gives under a name is whatever the function takes."""


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, each) for name in NAMED for each in (WRONG[:-1] if name == "choices" else WRONG)],
    ids=repr,
)
def test_what_a_selection_takes_by_name_is_a_dict(name: str, wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(MistakenType, match=rf"{name}: expected a .*dict"):
        selected(tmp_path / "a", **{name: wrong})
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["delta", "failure_value", "c"])
@pytest.mark.parametrize("wrong", ["0.05", b"x", [0.05], Path("nowhere")], ids=repr)
def test_what_a_selection_reckons_with_is_a_number(name: str, wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(MistakenType, match=rf"{name}: expected a number, got"):
        selected(tmp_path / "a", **{name: wrong})


@pytest.mark.parametrize("wrong", [1, 1.5, Path("nowhere"), "text", []], ids=repr)
def test_the_rows_of_a_selection_are_a_list(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"evaluate and data: expected agent.* and a list of rows"):
        selected(tmp_path / "a", data=wrong)


@pytest.mark.parametrize(
    "given", [{"seeds": [1, 2]}, {"samples": "problems"}, {"task": "mmd"}, {"model": "offline"}]
)
def test_what_would_have_no_effect_beside_rows_is_refused(
    given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(MistakenType, match=f"{next(iter(given))}: evaluate and data take choices"):
        selected(tmp_path / "a", **given)


@pytest.mark.parametrize("wrong", ["no", 2, [], Path("nowhere")], ids=repr)
def test_whether_samples_are_drawn_at_once_is_yes_or_no(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(MistakenType, match="parallel: expected True or False"):
        selected(tmp_path / "a", parallel=wrong)


def test_choices_and_rows_may_come_from_generators(tmp_path: Path) -> None:
    plain = selected(tmp_path / "a")
    choices = ({"words": k} for k in (1, 5))
    assert selected(tmp_path / "b", choices=choices, data=(k for k in (1, 2))) == plain


@pytest.mark.parametrize("wrong", [None, 1.5, np.float64(2), Path("nowhere"), "2"], ids=repr)
def test_arms_are_a_number_or_a_list(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(MistakenType, match="arms: expected a number K, or a list of seeds"):
        allocated(tmp_path / "a", arms=wrong)


def test_numbers_of_numpy_and_generators_of_seeds_make_the_same_arms(tmp_path: Path) -> None:
    plain = allocated(tmp_path / "a")
    assert allocated(tmp_path / "b", arms=np.int64(2), seed=np.int64(0), rounds=np.int64(2)) == (
        plain
    )
    assert allocated(tmp_path / "c", arms=(seed for seed in (40, 41))) == plain


@pytest.mark.parametrize("wrong", [1, True, ["rank"], Path("rank"), len], ids=repr)
def test_a_reward_of_a_live_allocation_has_a_name(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(MistakenType, match="reward: expected the name of one, out of best_fitness"):
        allocated(tmp_path / "a", reward=wrong)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        *(
            ("strategy", each, "strategy: expected the name of one, out of grid")
            for each in WRONG[:5]
        ),
        *(("task", each, "task: expected a name, a folder or a task") for each in ([], {}, [1])),
        ("children", iter([1]), "space, base: expected numbers, texts, models, and lists"),
        ("space", iter([1]), "space, base: expected numbers, texts, models, and lists"),
        ("space", {1: [2]}, "unknown field 1"),
        ("budget", {None: 2}, "budget: .*None"),
        ("base", [1], "base: expected a dict"),
    ],
)
def test_what_a_sweep_cannot_take_is_named(
    name: str, wrong: Any, message: str, tmp_path: Path
) -> None:
    how: dict[str, Any] = {"space": {"drafts": [1]}, "task": "mmd", "seeds": [1], "children": 1}
    how |= {"generations": 1, "progress": False, "log_dir": tmp_path / "a"}
    with pytest.raises((MistakenType, ValueError), match=message):
        evo.sweep(**{**how, name: wrong})
    assert not (tmp_path / "a").exists()
