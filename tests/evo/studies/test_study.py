"""What every study shares while a session works on it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import msgspec
import pytest

from evo.logs.journal import LogBusyError, Writer, encode_line
from evo.logs.stopping import stop_file
from evo.runs.budget import Ledger
from evo.runs.handle import Control
from evo.runs.settings import Settings
from evo.studies.study import Study

QUIET = Settings(progress=False, workers=1)


class Begun(msgspec.Struct, tag_field="kind", tag="begun"):
    number: int


class Line(msgspec.Struct, tag_field="kind", tag="line"):
    number: int


FIRST = Begun(0)
JOURNAL = msgspec.json.Decoder(Begun | Line)
LINES = msgspec.json.Decoder(Line)


def study(folder: Path, control: Control | None = None, settings: Settings = QUIET) -> Study:
    return Study(folder / "events.jsonl", settings, control or Control(), {"calls": 5})


def until(control: Control) -> str | None:
    """What is wished for, once something is."""
    deadline = time.monotonic() + 60
    while control.wish is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return control.wish


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_opened_ends_with_the_study_the_last_first(fails: bool, tmp_path: Path) -> None:
    ends = list[str]()

    @contextlib.contextmanager
    def opened(name: str):  # type: ignore[no-untyped-def]
        try:
            yield name
        except KeyError:
            ends.append(f"{name} fails")
            raise
        ends.append(name)

    with (
        pytest.raises(KeyError) if fails else contextlib.nullcontext(),
        study(tmp_path) as made,
    ):
        assert made.enter(opened("a")) == "a"
        made.at_end(lambda: ends.append("b"))
        made.enter(opened("c"))
        if fails:
            raise KeyError
    assert ends == (["c fails", "b", "a fails"] if fails else ["c", "b", "a"])


def test_a_ledger_is_that_of_the_larger_study_or_one_of_its_own(tmp_path: Path) -> None:
    whole = Ledger({"calls": 9})
    assert Study(tmp_path / "a", QUIET, Control(), whole).ledger is whole
    own = study(tmp_path).ledger
    assert own.limits == {"calls": 5}
    assert study(tmp_path).ledger is not own
    assert study(tmp_path).folder == tmp_path


def test_a_journal_is_begun_once_and_goes_on_for_one_session_at_a_time(tmp_path: Path) -> None:
    with study(tmp_path) as first:
        writer, records = first.open_journal(JOURNAL, what="journal", first=FIRST)
        assert records == [FIRST]
        writer.append(Line(1))
        with study(tmp_path) as other, pytest.raises(LogBusyError):
            other.open_journal(JOURNAL, what="journal", first=Begun(5))
        lines, kept = first.open_lines("more.jsonl", LINES, what="more")
        assert kept == []
        lines.append(Line(7))
    with study(tmp_path) as again:
        assert again.open_journal(JOURNAL, what="j", first=Begun(5))[1] == [FIRST, Line(1)]
        assert again.open_lines("more.jsonl", LINES, what="more")[1] == [Line(7)]


@pytest.mark.parametrize("wish", ["stop", "pause"])
@pytest.mark.parametrize("journal", [True, False])
def test_a_wish_beside_the_marker_is_heeded_once_it_is_claimed_and_not_before(
    journal: bool, wish: str, tmp_path: Path
) -> None:
    marker, control = tmp_path / "events.jsonl", Control()
    marker.write_bytes(encode_line(FIRST))
    asked = stop_file(marker, wish)  # type: ignore[arg-type]
    asked.touch()  # meant for an earlier session
    with study(tmp_path, control) as made:
        assert not control.paths
        if journal:
            made.open_journal(JOURNAL, what="journal", first=FIRST)
        else:
            made.claim(Writer.claim(marker))
        assert [*control.paths] == [marker.absolute()]
        assert not asked.exists()
        assert control.wish is None
        asked.touch()
        assert until(control) == wish
        assert control.stopping.is_set()
    assert not asked.exists()


def test_a_log_of_a_run_of_the_study_is_heeded_as_well(tmp_path: Path) -> None:
    control, log = Control(), tmp_path / "arm-00.jsonl"
    with study(tmp_path, control) as made:
        made.heed(log)
        stop_file(log, "stop").touch()
        assert until(control) == "stop"


@pytest.mark.parametrize("quiet", [True, False])
def test_runs_have_progress_bars_of_their_own_unless_the_study_is_quiet(
    quiet: bool, tmp_path: Path
) -> None:
    loud = Settings(progress=True, workers=1)
    with study(tmp_path, settings=loud) as made:
        opened = made.enter(made.resources(quiet=quiet, isolated=quiet))
        assert opened.settings.progress == (not quiet)
        assert opened.isolated == quiet
        assert opened.control is made.control
        assert made.settings.progress


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_of_the_whole_study_is_shown_where_progress_is(
    shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[dict[str, object]]()

    @contextlib.contextmanager
    def bar(**given: object):  # type: ignore[no-untyped-def]
        yield asked.append(given)
        asked.clear()

    monkeypatch.setattr("evo.studies.study.progress_bar", bar)
    with study(tmp_path, settings=Settings(progress=shown, workers=1)) as made:
        made.progress(7, "run", "a sweep")
        assert asked == [{"total": 7, "unit": "run", "label": "a sweep", "shown": shown}]
    assert asked == []  # it ends with the study
