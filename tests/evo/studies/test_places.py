"""A cell that is run twice goes on where its study was, whether or not a folder was named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evo
from evo.logs.journal import LogError

ROWS = [{"text": "one two three"}] * 40


def few_words(row: dict[str, str], words: int) -> float:
    """An agent whose score is whether a row has enough words."""
    return float(len(row["text"].split()) >= words)


def allocate(**more: Any) -> Any:
    return evo.allocate_live("mmd", "ucb1", arms=2, rounds=3, **{"children": 1, **more})


def sweep(**more: Any) -> Any:
    given = {"task": "mmd", "seeds": [1], "base": {"generations": 1}, **more}
    return evo.sweep({"children": [1, 2]}, **given)


def select(**more: Any) -> Any:
    given = {"task": "mmd", "generations": 1, "seeds": range(3), **more}
    return evo.select_best([{"children": 1}, {"children": 2}], **given)


def agent(**more: Any) -> Any:
    return evo.select_best({"words": [1, 5]}, evaluate=few_words, data=ROWS, **more)


Study = Callable[..., Any]
STUDIES = pytest.mark.parametrize("study", [allocate, sweep, select, agent])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def place(made: Any) -> Path:
    return Path(getattr(made, "path", None) or made.folder)


def sizes(folder: Path) -> dict[Path, int]:
    """Lines of every file of a study but those that say when its sessions began and ended."""
    files = [path for path in folder.rglob("*.jsonl") if path.name != "events.jsonl"]
    lines = {path: path.read_text().splitlines() for path in files}
    of_sessions = ("session", "end")
    return {
        path: sum(json.loads(line).get("kind") not in of_sessions for line in each)
        for path, each in lines.items()
    }


@STUDIES
def test_without_a_folder_the_same_study_is_returned_and_says_so(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    first = study()
    assert "going on" not in capsys.readouterr().err
    before = sizes(place(first))
    again = study()
    assert (
        f"going on with {place(first)}; resume=False (--no-resume) begins anew"
        in capsys.readouterr().err
    )
    assert place(again) == place(first)
    assert sizes(place(first)) == before
    anew = study(resume=False, progress=False)
    assert place(anew) != place(first)
    assert place(study(progress=False)) == place(anew), "the newest goes on"
    assert "going on" not in capsys.readouterr().err


@STUDIES
def test_a_folder_that_was_named_is_refused_where_nothing_shall_go_on(study: Study) -> None:
    first = study(log_dir="mine", progress=False, resume=False)
    before = sizes(place(first))
    with pytest.raises(
        LogError, match=r"^mine: exists already; resume=True \(without --no-resume\) goes"
    ):
        study(log_dir="mine", progress=False, resume=False)
    assert sizes(Path("mine")) == before
    assert place(study(log_dir="mine", progress=False, resume="auto")) == Path("mine")
    with pytest.raises(ValueError, match=r"^resume: expected True or False, got 'yes'"):
        study(log_dir="mine", progress=False, resume="yes")


@pytest.mark.parametrize(
    ("study", "other"),
    [
        (allocate, {"children": 2}),  # not in the journal, but in the arms' logs
        (allocate, {"temperature": 0.1}),
        (allocate, {"budget": {"calls": 2}}),
        (sweep, {"seeds": [2]}),
        (sweep, {"temperature": 0.1}),
        (select, {"delta": 0.2}),
        (select, {"temperature": 0.1}),
        (agent, {"cost_weight": 0.5}),
        (agent, {"seed": 1}),
    ],
)
def test_another_study_of_the_same_name_has_a_folder_of_its_own(
    study: Study, other: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first = study()
    assert "a new folder" not in capsys.readouterr().err
    second = study(**other)
    assert place(first) != place(second)
    said = f"{place(second)} is a new folder, since {place(first)} is of another study"
    assert said in capsys.readouterr().err
    assert place(study(progress=False)) == place(first)
    assert place(study(progress=False, **other)) == place(second)


def test_an_agent_whose_code_was_changed_is_tried_anew() -> None:
    def select_by(words: str) -> Any:
        namespace: dict[str, Any] = {}
        path = Path(f"cell_{words}.py")
        path.write_text(f"def tried(row, words):\n    return {words}\n")
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        choices = {"words": [0, 1]}
        tried = namespace["tried"]
        return evo.select_best(choices, evaluate=tried, data=ROWS, progress=False)

    first, second = select_by("float(words)"), select_by("1.0-words")
    assert place(first) != place(second)
    assert (first.winner, second.winner) == (1, 0)


@pytest.mark.parametrize(
    ("study", "unit"), [(sweep, "calls"), (select, "calls"), (agent, "samples")]
)
def test_what_a_budget_ended_goes_on_in_its_folder(study: Study, unit: str) -> None:
    given: dict[str, Any] = {"progress": False}
    if study is sweep:
        given["base"] = {"generations": 3}
    first = study(budget={unit: 2}, **given)
    part = sizes(place(first))
    again = study(budget={unit: 10_000}, **given)
    assert place(again) == place(first)
    assert sum(sizes(place(first)).values()) > sum(part.values())
    whole = study(log_dir="whole", **given)
    assert sum(sizes(place(first)).values()) >= sum(sizes(place(whole)).values())


def test_a_stopped_allocation_goes_on_by_the_same_cell(tmp_path: Path) -> None:
    given: dict[str, Any] = {"arms": 2, "rounds": 40, "children": 1, "progress": False}
    handle = evo.start_allocation("mmd", "ucb1", **given)
    handle.stop()
    stopped = handle.wait(60)
    done = evo.allocate_live("mmd", "ucb1", **given)
    assert done.path.absolute() == stopped.path.absolute()
    assert len(done.completion_order) == 40
    seeds = [(k, each.seed) for k, log in enumerate(done.arms) for each in log.outcomes]
    assert len(seeds) == len({*seeds}) == 40


def test_two_that_begin_at_once_share_a_folder_only_where_they_are_the_same() -> None:
    given: dict[str, Any] = {"arms": 2, "rounds": 20, "progress": False}
    one = evo.start_allocation("mmd", "ucb1", children=1, **given)
    same = evo.start_allocation("mmd", "ucb1", children=1, **given)
    other = evo.start_allocation("mmd", "ucb1", children=2, **given)
    made, beside = one.wait(60), other.wait(60)
    assert same.wait(60).path == made.path != beside.path
    assert [log.header.children for log in beside.arms] == [2, 2]
