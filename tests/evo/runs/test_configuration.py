"""Which options of a run go together with which task."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("given", [b"40:42", bytearray(b"1"), 40, None])
def test_what_holds_no_seeds_is_named(given: object) -> None:
    """Bytes hold numbers, but of characters."""
    with pytest.raises(TypeError, match=r"seeds: expected several numbers such as \[40, 41\], got"):
        seeds_of(given)


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


CAPPED = [
    ({"children": 60_000, "drafts": 2, "critic": "offline-2"}, "EVO_MAX_CHILDREN"),
    ({"inspirations": 100_001}, "EVO_MAX_CHILDREN"),
    ({"draws": 10_001}, "EVO_MAX_DRAWS"),
    ({"confirm": 10_001}, "EVO_MAX_DRAWS"),
]


@pytest.mark.parametrize(("given", "cap"), CAPPED)
def test_what_a_slip_makes_endless_is_refused_by_the_cap_that_can_be_raised(
    given: dict[str, object], cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=f"if you trust it, raise {cap}"):
        make_header("mmd", **given)  # type: ignore[arg-type]
    monkeypatch.setenv(cap, "1000000")
    header = make_header("mmd", **given)  # type: ignore[arg-type]
    assert all(getattr(header, name) == value for name, value in given.items() if name != "critic")


def test_an_evaluator_in_this_process_is_not_confirmed_and_a_single_draw_has_no_spread() -> None:
    text = "def f():\n    return 1\n"
    here = evo.task("here", initial_program=text, evaluate=float, where="here", statement="-")
    assert make_header(here, draws=2).draws == 2
    with pytest.raises(ValueError, match="confirm: an evaluator in this process is not played aga"):
        make_header(here, confirm=2)
    with pytest.raises(ValueError, match="confirm: expected 0 or at least 2 draws"):
        make_header("mmd", confirm=1)


def test_seeds_are_no_more_than_anybody_runs() -> None:
    assert len(seeds_of(range(1000))) == 1000
    with pytest.raises(ValueError, match=r"seeds: expected at most 1,000,000, got range\(0, 10"):
        seeds_of(range(10**9))


def test_settings_are_given_together_or_one_by_one(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    with pytest.raises(TypeError, match="progress: give it within settings, not beside it"):
        evo.run("mmd", log=log, settings=evo.Settings(), progress=False)
    assert not log.exists()
