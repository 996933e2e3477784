"""Which options of a run go together with which task."""

from __future__ import annotations

import msgspec
import pytest

import evo
from evo.runs.configuration import make_header, make_header_again, seeds_of

NOISY = {"draws": 2, "confirm": 2}


def test_draws_are_for_programs_and_refused_where_an_evaluation_asks_a_model() -> None:
    header = make_header(evo.load_task("mmd"), **NOISY)
    assert (header.draws, header.confirm) == (2, 2)
    for each in ({"draws": 2}, {"confirm": 2}):
        with pytest.raises(ValueError, match="draws, confirm: a text's evaluation makes calls"):
            make_header(evo.load_task("wp"), **each)
    assert make_header(evo.load_task("wp"), draws=1, confirm=0).draws == 1


@pytest.mark.parametrize("given", [[], (3, 3), "4,4", "5:5"])
def test_seeds_are_at_least_one_and_all_different(given: object) -> None:
    with pytest.raises(ValueError, match="seeds: expected at least one and all different"):
        seeds_of(given)
    assert seeds_of("7,1:3") == (7, 1, 2)


def test_the_critic_is_that_of_the_drafts_or_of_the_task_and_there_is_none_else() -> None:
    task = evo.load_task("mmd")
    assert make_header(task).critic is None
    critic = make_header(task, drafts=2, critic="offline-2").critic
    assert critic is not None
    assert critic.model.name == "offline-2"


@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("inspirations", [0, 2])
@pytest.mark.parametrize("confirm", [0, 2])
def test_prompts_of_an_older_log_stay_as_they_were_if_its_version_tells_on_them(
    feedback: bool, inspirations: int, confirm: int
) -> None:
    """It does so by feedback, and by the rank of inspirations where fitness is confirmed."""
    how = {"feedback": feedback, "inspirations": inspirations, "confirm": confirm}
    now = make_header(evo.load_task("mmd"), draws=2, **how)
    old = msgspec.structs.replace(now, prompt_version=1)
    tells = feedback or (inspirations and confirm)
    assert make_header_again(old).prompt_version == (1 if tells else now.prompt_version)
    plain = make_header_again(old, feedback=False, inspirations=0)
    assert (
        plain.prompt_version
        == make_header(evo.load_task("mmd"), draws=2, confirm=confirm).prompt_version
    )


def test_a_run_that_goes_on_with_another_search_is_prompted_as_runs_of_that_search_are() -> None:
    task = evo.load_task("mmd")
    greedy = make_header(task, **NOISY)
    other = make_header_again(greedy, search="population")
    assert other.prompt_version == make_header(task, search="population", **NOISY).prompt_version
    assert other.prompt_version > greedy.prompt_version
