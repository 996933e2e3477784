"""What users' importers do is passed on or named, and one that fails keeps nothing from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import evo
import replay
from evo.logs.journal import LogBusyError, LogError
from evo.plugins import MistakenType
from replay import importers
from replay.importers import _RECOGNISED, IMPORTERS, LogFormatError, assemble, born
from replay.importers.added import runs_of, tolerant
from replay.importers.foreign import Imported
from replay.logs.others import NothingYetError

PLACE = Path("there")


def imported(name: str) -> Imported:
    """A run of one child."""
    made = [born(k, evo.Evaluation(status="ok", fitness=0.5)) for k in range(2)]
    return assemble(
        PLACE, "theirs", name=name, initial=made[0], children=[made[1:]], lost=[],
        model=evo.Model("m"),
    )  # fmt: skip


def fail(error: BaseException) -> Callable[[Path], object]:
    """An importer's function that raises."""

    def failing(path: Path) -> object:
        raise error

    return failing


def test_what_recognises_is_asked_about_the_path_and_believed() -> None:
    asked = tolerant("theirs", lambda path: path.suffix == ".theirs")
    assert asked(Path("a.theirs"))
    assert not asked(Path("a.ours"))


@pytest.mark.parametrize(("said", "meant"), [("yes", True), ([], False), (None, False), (1, True)])
def test_what_recognises_may_answer_with_any_value(said: object, meant: bool) -> None:
    assert tolerant("theirs", lambda path: said)(PLACE) is meant  # type: ignore[arg-type, return-value]


class Undecided:
    """Neither true nor false, as an array of several values is."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


@pytest.mark.parametrize(
    ("recognise", "words"),
    [(fail(KeyError("k")), "KeyError: 'k'"), (lambda path: Undecided(), "ValueError: ambiguous")],
)
def test_what_cannot_say_recognises_nothing_and_a_warning_names_it(
    recognise: Callable[[Path], bool], words: str
) -> None:
    asked = tolerant("theirs", recognise)
    for _ in range(2):  # it is asked about the next path, too
        with pytest.warns(RuntimeWarning, match=f"'theirs' recognises nothing: .* raised {words}"):
            assert asked(PLACE) is False


def test_an_interrupt_is_no_failure_of_an_importer() -> None:
    interrupted = fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        tolerant("theirs", interrupted)(PLACE)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        runs_of("theirs", PLACE, interrupted)


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda runs: (each for each in runs)])
def test_runs_come_in_their_order_however_they_are_listed(kind: Callable[..., object]) -> None:
    runs = [imported(name) for name in "bca"]
    places = []

    def read(path: Path) -> object:
        places.append(path)
        return kind(runs)

    assert runs_of("theirs", PLACE, read) == runs
    assert places == [PLACE]


@pytest.mark.parametrize("given", [3, importers.reading])
def test_what_cannot_read_is_told_what_an_importer_is(given: Any) -> None:
    with pytest.raises(MistakenType, match="importer 'theirs': expected a function of a path, or"):
        runs_of("theirs", PLACE, given)


@pytest.mark.parametrize("nothing", [[], iter(())])
def test_a_place_without_runs_is_an_error_alone_and_left_out_beside_others(
    nothing: Iterable[Imported], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NothingYetError, match=r"there: the importer 'theirs' found no runs"):
        runs_of("theirs", PLACE, lambda path: nothing)
    monkeypatch.setitem(IMPORTERS, "theirs", lambda path: [imported("a")] * (path.stem == "full"))
    monkeypatch.setitem(_RECOGNISED, "theirs", lambda path: path.suffix == ".theirs")
    for name in ("full.theirs", "empty.theirs"):
        (tmp_path / name).touch()
    for load in (importers.read, importers.load, replay.load):
        with pytest.raises(LogFormatError, match=r"empty.theirs: the importer 'theirs' found no"):
            load(tmp_path / "empty.theirs")
    with pytest.warns(UserWarning, match=r"left out: .*empty.theirs: the importer 'theirs' found"):
        assert len(importers.read(tmp_path)) == 1


@pytest.mark.parametrize("error", [LogError("a.jsonl:3: torn"), LogBusyError("busy")])
def test_an_error_about_a_log_is_passed_on_as_it_is(error: LogError) -> None:
    with pytest.raises(LogError) as raised:
        runs_of("theirs", PLACE, fail(error))
    assert raised.value is error


def _halfway(path: Path) -> object:
    yield imported("a")
    raise ZeroDivisionError("at the second run")


@pytest.mark.parametrize("read", [fail(ZeroDivisionError("at the second run")), _halfway])
def test_any_other_error_names_the_importer_and_the_place_and_keeps_its_cause(
    read: Callable[[Path], object],
) -> None:
    words = "^there: the importer 'theirs' failed: ZeroDivisionError: at the second run$"
    with pytest.raises(LogFormatError, match=words) as raised:
        runs_of("theirs", PLACE, read)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    "found", [None, 3, "runs", imported("a"), [imported("a"), None], {"a": imported("a")}]
)
def test_what_is_no_list_of_runs_is_quoted_in_short(found: object) -> None:
    with pytest.raises(MistakenType, match=r"^importer 'theirs': expected a list ") as raised:
        runs_of("theirs", PLACE, lambda path: found)
    _, _, quoted = str(raised.value).partition(", got ")
    assert quoted
    assert repr(found)[:80] == quoted


def test_runs_of_one_name_are_refused_by_that_name_and_runs_with_their_own_are_not() -> None:
    runs = [imported(name) for name in ("a", "b", "a/b")]
    assert runs_of("theirs", PLACE, lambda path: runs) == runs
    with pytest.raises(LogFormatError, match=r"there: .*'theirs' calls several runs 'b'; give"):
        runs_of("theirs", PLACE, lambda path: [*runs, imported("b")])
