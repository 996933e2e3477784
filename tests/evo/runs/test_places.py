import asyncio
import gzip
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import evo
from evo.logs.journal import LogBusyError, LogError

QUIET = {"children": 2, "progress": False}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def programs(log: evo.Log) -> list[str | None]:
    return [child.program for child in log.children]


def test_a_cell_that_is_run_twice_goes_on_where_its_log_was(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    first = evo.run("mmd", generations=1, log=path, **QUIET)
    content = path.read_bytes()
    again = evo.run("mmd", generations=1, log=path, **QUIET)
    assert path.read_bytes() == content
    assert programs(again) == programs(first)
    longer = evo.run("mmd", generations=2, log=path, resume="auto", **QUIET)
    assert len(longer.generations) == 2
    content = path.read_bytes()
    whole = evo.run("mmd", generations=1, log=path, **QUIET)
    assert len(whole.generations) == 2
    assert path.read_bytes() == content


def test_a_log_that_was_compressed_is_found_under_its_name_and_does_not_go_on(tmp_path) -> None:
    path, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    first = programs(evo.run("mmd", generations=1, log=path, **QUIET))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    again = evo.run("mmd", generations=1, log=path, **QUIET)
    assert (again.path, programs(again)) == (packed, first)
    with pytest.raises(LogError, match=r"a compressed log cannot go on; decompress it first"):
        evo.run("mmd", generations=2, log=path, **QUIET)
    with pytest.raises(LogError, match="holds another run: children 2 there, 3 here"):
        evo.run("mmd", generations=1, log=path, children=3, progress=False)
    assert not path.exists()


def test_a_log_of_another_run_is_an_error_that_says_how_it_differs(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    evo.run("mmd", generations=1, log=path, **QUIET)
    with pytest.raises(LogError, match=r"exists already.*seed 0 there, 3 here") as caught:
        evo.run("mmd", generations=1, seed=3, draws=2, log=path, **QUIET)
    assert "draws 1 there, 2 here" in str(caught.value)
    with pytest.raises(LogError, match="exists already; resume=True"):
        evo.run("mmd", generations=1, log=path, resume=False, **QUIET)
    with pytest.raises(ValueError, match="resume: expected True or False, got 'yes'"):
        evo.run("mmd", generations=1, log=path, resume="yes", **QUIET)


def test_a_search_whose_code_has_changed_is_told_how_it_goes_on(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    for number, plan in enumerate((plan_first, plan_last)):
        search = type("Mine", (), {"__annotations__": {}, "name": "mine", "start": start,
                                   "fold": fold, "plan": plan})  # fmt: skip
        mine = dataclass(frozen=True)(search)()
        if number == 0:
            evo.run("mmd", search=mine, generations=1, log=path, **QUIET)
            continue
        with pytest.raises(LogError, match=r"the code of its search has changed.*evo\.resume\("):
            evo.run("mmd", search=mine, generations=2, log=path, **QUIET)
        with pytest.warns(UserWarning, match="is not that which began the log"):
            longer = evo.resume(path, search=mine, generations=2, progress=False)
        assert len(longer.generations) == 2


def test_filters_whose_code_has_changed_are_told_how_the_run_goes_on(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    for number, check in enumerate((lambda self, program, archive: None, refuse_long)):
        mine = type("Mine", (), {"__annotations__": {}, "name": "mine", "check": check})
        kinds = (dataclass(frozen=True)(mine)(), evo.filters.SameProgram())
        if number == 0:
            evo.run("mmd", filters=kinds, generations=1, log=path, **QUIET)
            continue
        with pytest.raises(
            LogError,
            match=r"code of its filters has changed.*\(evo.FILTERS\['mine'\] = ...\), goes on",
        ):
            evo.run("mmd", filters=kinds, generations=2, log=path, **QUIET)
        with pytest.raises(LogError, match="filters mine, same_program there, same_program here"):
            evo.run("mmd", filters=kinds[1:], generations=2, log=path, **QUIET)


def refuse_long(self, program, archive):
    return "too long" if len(program) > 10_000 else None


def start(self, initial, min_improvement):
    return (initial,)


def fold(self, state, generation):
    return (*state, *(each for each in generation if each.fitness is not None))


def plan_first(self, state, children, rng):
    return [evo.searches.Request((state[0].place,))] * children


def plan_last(self, state, children, rng):
    return [evo.searches.Request((state[-1].place,))] * children


def test_without_a_name_the_newest_log_of_the_same_run_goes_on_and_says_so(capsys) -> None:
    shown = {"children": 2, "generations": 1}
    first = evo.run("mmd", **shown)
    assert "going on" not in capsys.readouterr().err
    other = evo.run("mmd", resume=False, **shown)
    assert other.path != first.path
    again = evo.run("mmd", **shown)
    assert again.path == other.path
    assert f"going on with {other.path}" in capsys.readouterr().err
    assert evo.run("mmd", seed=5, **shown).path not in (first.path, other.path)


def test_several_runs_go_on_and_a_budget_counts_all_sessions(tmp_path) -> None:
    options = {"seeds": [1, 2], "log_dir": tmp_path / "runs", "generations": 2, **QUIET}
    first = evo.run_many("mmd", budget={"calls": 4}, **options)
    again = evo.run_many("mmd", budget={"calls": 4}, **options)
    assert [each.path for each in again] == [each.path for each in first]
    assert [programs(each) for each in again] == [programs(each) for each in first]
    assert len(list((tmp_path / "runs").iterdir())) == 2
    evo.run_many("mmd", resume=False, **options)
    assert len(list((tmp_path / "runs").iterdir())) == 4


def test_a_line_says_why_runs_begin_new_logs_beside_others_of_their_names(tmp_path, capsys) -> None:
    evo.load_task("mmd").save(tmp_path / "task")
    settings = {"generations": 1, "children": 1, "seeds": [1, 2], "log_dir": "logs"}
    evo.run_many("task", **settings)
    evo.run_many("task", **settings)
    assert "is a new log" not in capsys.readouterr().err
    evaluator = tmp_path / "task" / "evaluator.py"
    evaluator.write_text(evaluator.read_text() + "\n# edited\n")
    made = evo.run_many("task", **settings)
    assert [log.path.stem[-4:] for log in made] == ["s1-2", "s2-2"]
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "is a new log" in each]
    assert line.startswith("logs/min_max_distance-offline-N1-s1-2.jsonl is a new log, since logs/")
    assert line.endswith("evaluator.py of the task min_max_distance changed; 1 more likewise")
    evo.run_many("task", **settings, resume=False)
    assert "is a new log" not in capsys.readouterr().err
    with pytest.warns(UserWarning, match=r"s1-4\.jsonl is a new log, since .* likewise"):
        evo.run_many("task", **settings, draws=2, progress=False)
    assert "is a new log" not in capsys.readouterr().err
    newest = sorted(tmp_path.glob("logs/*-s1-*.jsonl"))[-1]
    newest.write_bytes(newest.read_bytes().replace(b'"draws":2', b'"draws":3'))  # damaged
    with pytest.warns(UserWarning, match="this log is passed over"):
        evo.run_many("task", **{**settings, "seeds": [1]}, draws=4)
    assert "is a new log, since" in capsys.readouterr().err  # of the readable ones before it


def test_a_line_says_why_a_fork_begins_a_new_log_beside_others_of_its_name(
    tmp_path, capsys
) -> None:
    log = evo.run("mmd", log=tmp_path / "a.jsonl", generations=2, **QUIET)
    how = {"at": 1, "log_dir": tmp_path / "forks", "generations": 2}
    evo.fork(log.path, **how)
    evo.fork(log.path, search="population", progress=False, **how)  # other forks are expected
    assert "is a new log" not in capsys.readouterr().err
    evo.fork(log.path, search="islands", **how)
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "is a new log" in each]
    assert "copy0-3.jsonl is a new log, since " in line
    assert "search" in line


def test_a_grid_goes_on_unless_told_otherwise(tmp_path: Path) -> None:
    given = {"calls": 2, "seeds": [1], "log_dir": tmp_path, "progress": False}
    logs = evo.run_grid("mmd", **given)
    again = evo.run_grid("mmd", **given)
    anew = evo.run_grid("mmd", resume=False, **given)
    assert [log.path for log in again] == [log.path for log in logs]
    assert not {log.path for log in anew} & {log.path for log in logs}
    assert [log.header.children for log in anew] == [log.header.children for log in logs]


def test_starting_the_same_run_again_returns_the_handle_that_runs(tmp_path) -> None:
    gate = threading.Event()
    options = {"generations": 3, "log": tmp_path / "a.jsonl", **QUIET}
    handle = evo.start("mmd", on_event=lambda event: gate.wait(20), **options)
    try:
        assert evo.start("mmd", **options) is handle
    finally:
        gate.set()
    assert len(handle.wait().generations) == 3
    assert evo.start("mmd", **options) is not handle


def test_a_handle_is_taken_over_by_a_run_in_the_foreground(tmp_path) -> None:
    options = {"log": tmp_path / "a.jsonl", **QUIET}
    handle = evo.start("mmd", generations=50, **options)
    log = evo.run("mmd", generations=3, **options)
    assert not handle.running
    assert len(log.generations) >= 3
    assert evo.rerun(log.path).same


def test_a_log_that_another_process_writes_is_busy(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    evo.run("mmd", generations=1, log=path, **QUIET)
    from evo.logs.journal import Writer

    with Writer.claim(path), pytest.raises(LogBusyError):
        evo.run("mmd", generations=2, log=path, **QUIET)


def test_a_fork_that_exists_goes_on(tmp_path) -> None:
    log = evo.run("mmd", generations=2, log=tmp_path / "a.jsonl", **QUIET)
    (first,) = evo.fork(log.path, at=1, progress=False)
    (again,) = evo.fork(log.path, at=1, progress=False)
    assert again.path == first.path
    (new,) = evo.fork(log.path, at=1, resume=False, progress=False)
    assert new.path != first.path


def test_a_handle_can_be_awaited(tmp_path) -> None:
    async def work() -> evo.Log:
        return await evo.start("mmd", generations=1, log=tmp_path / "a.jsonl", **QUIET)

    assert len(asyncio.run(work()).generations) == 1


REPLY = "```python\ndef solve():\n    return 1\n```"


class Wanders:
    """A model in whose first call the process changes its folder."""

    def __init__(self) -> None:
        self.folder = Path.cwd() / "elsewhere"
        self.folder.mkdir()

    def __call__(self, messages: object) -> str:
        os.chdir(self.folder)
        return REPLY


def leave(model: Wanders) -> None:
    """As a cell that is run meanwhile may do, before anything was opened."""
    os.chdir(model.folder)


HOW: dict[str, Any] = {"children": 2, "workers": 1, "progress": False, "cache": "replies.sqlite"}


@pytest.mark.parametrize("how", ["start", "start in a folder", "allocation", "searcher"])
def test_a_folder_that_is_changed_meanwhile_moves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    model = Wanders()
    if how == "start":
        handle = evo.start("mmd", model=model, generations=2, log="a.jsonl", **HOW)
        leave(model)
        assert handle.wait(60).finished
        files = ["a.jsonl"]
    elif how == "start in a folder":
        many = evo.start("mmd", model=model, generations=2, seeds=[1, 2], log_dir="logs", **HOW)
        leave(model)
        assert all(log.finished for log in many.wait(60))
        files = sorted(f"logs/{path.name}" for path in many.paths)
    elif how == "allocation":
        going = evo.start_allocation(
            "mmd", "random", arms=2, rounds=3, model=model, log_dir="all", **HOW
        )
        leave(model)
        assert len(going.wait(60).pulls) == 3
        files = ["all/allocation.jsonl", "all/arm-00.jsonl", "all/arm-01.jsonl"]
    else:
        with evo.Searcher("mmd", children=2, generations=1, log="a.jsonl") as search:
            (prompt, other) = search.ask()
            leave(model)
            search.tell(prompt, REPLY)
            search.tell(other, REPLY)
            assert search.log.path == tmp_path / "a.jsonl"
        files = ["a.jsonl"]
    os.chdir(tmp_path)
    assert os.listdir("elsewhere") == []
    assert set(files) <= {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    for file in files:
        if "allocation.jsonl" not in file:
            assert evo.read_log(file).initial


FOREGROUND: dict[str, Callable[[Any], Any]] = {
    "run": lambda model: evo.run("mmd", model=model, generations=2, log="a.jsonl", **HOW),
    "run in a folder": lambda model: evo.run("mmd", model=model, generations=2, **HOW),
    "runs": lambda model: evo.run_many(
        "mmd", model=model, generations=2, seeds=[1, 2], log_dir="many", **HOW
    ),
    "grid": lambda model: evo.run_grid(
        "mmd", model=model, calls=2, seeds=[1], log_dir="grid", workers=1, progress=False
    ),
    "resume": lambda model: evo.resume(
        "begun.jsonl", model=model, generations=2, workers=1, progress=False
    ),
    "fork": lambda model: evo.fork(
        "begun.jsonl", at=1, model=model, generations=2, workers=1, progress=False
    ),
    "sweep": lambda model: evo.sweep(
        {"children": [1, 2]}, task="mmd", model=model, generations=2, seeds=[1], log_dir="sweep",
        workers=1, progress=False,
    ),
    "select": lambda model: evo.select_best(
        [{"children": 1}, {"children": 2}], task="mmd", model=model, generations=1, seeds=[1, 2],
        log_dir="select", bounds=(0, 1), workers=1, progress=False,
    ),
    "allocate": lambda model: evo.allocate_live(
        "mmd", "random", arms=2, rounds=3, model=model, log_dir="arms", **HOW
    ),
}  # fmt: skip


def works_in(messages: object) -> str:
    """A model that changes the folder of the process."""
    os.chdir(os.environ["WORKS_IN"])
    return REPLY


def every_path(found: Any) -> list[Path]:
    """The paths of a result and of the logs in it."""
    if isinstance(found, list):
        return [path for each in found for path in every_path(each)]
    own = [getattr(found, name) for name in ("path", "folder") if hasattr(found, name)]
    return [*own, *every_path(getattr(found, "arms", []))]


@pytest.mark.parametrize("verb", FOREGROUND)
def test_a_model_that_changes_the_folder_moves_no_file_in_the_foreground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    files = []
    for name in ("stays", "wanders"):
        here = tmp_path / name
        (here / "elsewhere").mkdir(parents=True)
        monkeypatch.chdir(here)
        monkeypatch.setenv("WORKS_IN", str(here))
        if verb in ("resume", "fork"):
            evo.run("mmd", model=works_in, generations=1, log="begun.jsonl", **HOW)
        wanders = name == "wanders"
        if wanders:
            monkeypatch.setenv("WORKS_IN", str(here / "elsewhere"))
        found = FOREGROUND[verb](works_in)
        assert os.listdir(here / "elsewhere") == []
        paths = every_path(found)
        assert paths
        assert {path.is_absolute() for path in paths} == {wanders}  # as given, while that is right
        assert all(path.exists() for path in paths)
        files.append({str(path.relative_to(here)) for path in here.rglob("*")})
    assert files[0] == files[1]
