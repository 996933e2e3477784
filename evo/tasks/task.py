"""Tasks: a statement, an initial program and an evaluator, loaded from a folder or from a log."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evo.capture.running import restated, short_hash
from evo.logs import examples
from evo.logs.caps import held
from evo.logs.hashes import hash_of_task
from evo.logs.languages import ENTRY, LANGUAGES
from evo.logs.records import Evaluation, Evolves, Isolation, Limits, StageRecord, TaskRecord
from evo.logs.several import PROGRAM_FILES
from evo.logs.types import as_path
from evo.plugins import meant, plugged_in
from evo.tasks.contradictions import check_record
from evo.tasks.folder import (
    FILE_CAP,
    NOTES_FILE,
    TaskConfig,
    TaskError,
    config_beside,
    config_in,
    evolves_by,
    folder_of_files,
    inside,
    isolation_of,
    read_config,
    read_folder,
    relative,
)
from evo.tasks.instances import read_instances
from evo.tasks.several import packed, several_files, write_folder
from evo.tasks.stages import stages_of

if TYPE_CHECKING:
    from evo import Check

SHIPPED = Path(__file__).with_name("shipped")
PROGRAM_NAMES = [f"initial_program.{ending}" for ending in ("py", "txt", "md")]
PROGRAM_NAMES += ["initial.py", "src/init_program.py"]
_KEPT = (
    *("picture", "language", "private", "scores", "missing", "score", "critic", "rubric"),
    "fitness_key",
)
"""What a record states as task.toml does."""
_STATEMENTS = {
    evolves: f"Improve the {what} so that its evaluator gives it a higher score."
    for evolves, what in (("python", "program"), ("text", "text"))
}
"""Of tasks that state none."""
_MADE_OF = (
    "a task is made of a program or a text and what scores it, "
    "evo.task(name, initial_program=..., evaluate=...)"
)
EVALUATOR_NAMES = ("evaluator.py", "evaluator/evaluator.py", "evaluate.py")


class EvaluatorFailed(TaskError):  # noqa: N818 - about the task's own file
    """A task's evaluator fails on the initial program for a reason of its own."""


@dataclass(frozen=True)
class Task:
    """A task: what is evolved and how it is scored.

    Attributes:
        record: Everything a log embeds of it.
        limits: Default limits of an evaluation.
        references: Fitness of textbook rules and of the best known, by name; a task that comes
            from a log has none.
        asks: The model that is asked instances under a text: a name, or whatever a run takes as
            its model; None: that of the run.

    Example:
        >>> task = evo.load_task("mmd")
        >>> task.evaluate().status
        'ok'
        >>> task.limits.seconds
        60.0
    """

    record: TaskRecord
    limits: Limits
    references: Mapping[str, float] = field(default_factory=dict)
    asks: object = None

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.record.name

    @property
    def statement(self) -> str:
        """The description of the program's purpose in the prompt."""
        return self.record.statement

    @property
    def initial_program(self) -> str:
        """Source text of generation 0, see `evo.unpack`."""
        return self.record.files[self.record.program_file]

    def evaluate(self, program: object = None, model: object = None) -> Evaluation:
        """Evaluates a program, by default the initial one, as `evo.evaluate` does.

        Args:
            program: Source text, the text that evolves, a function, or a dict of some of its files.
            model: What answers where a text is evaluated on a data set (default: the offline
                model).
        """
        import evo

        if program is not None and not isinstance(program, str | Mapping):
            from evo.capture import capture

            program = capture(program).text
        text: str | Mapping[str, str] = self.initial_program if program is None else program
        asked = {} if model is None else {"model": model}
        return evo.evaluate(self, text, **asked)  # type: ignore[arg-type]  # it says what it takes

    def check(self, model: object = None, **options: object) -> Check:
        """Evaluates the initial program and shows the first prompt of a run with some options.

        Args:
            model: As for `evaluate`.
            **options: Those of `evo.run` that say what a run is, such as `feedback=True`.

        Raises:
            ValueError: An option is out of range, or the search asks for what cannot be.
        """
        import evo

        if model is not None:
            options["model"] = model
        return evo.Check.of(self, **options)  # type: ignore[arg-type]  # it says what it takes

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the folder that `evo run FOLDER` takes and returns its path; the hash is the same.

        Args:
            folder: A folder that does not exist yet, or is empty.

        Raises:
            TaskError: The evaluator runs in this process, or the folder holds something.
        """
        record, place = self.record, as_path("folder", folder)
        if record.isolation == "here":
            raise TaskError(
                f"{record.name}: its evaluator runs in this process, with what it has open there, "
                "and is no file; where='sandbox' makes it one"
            )
        if place.exists() and any(place.iterdir()):
            raise TaskError(f"{place}: expected a new or an empty folder")
        write_folder(place, record)
        return place

    def _repr_html_(self) -> str:
        from evo.tasks.display import as_html

        return as_html(self.record, self.limits)

    def __repr__(self) -> str:
        record = self.record
        what = record.language or record.evolves
        return (
            f"Task({record.name!r}, evolves {what}, isolation {record.isolation}, "
            f"{len(record.files) + len(record.encoded)} files, hash {record.hash[:12]})"
        )


def entry_in(language: str, isolation: Isolation) -> tuple[str, ...]:
    """Returns the entry of a program that is compiled and run by one in Python; else nothing."""
    return (ENTRY,) if language and isolation != "shared" else ()


@functools.cache
def shipped_tasks() -> Mapping[str, TaskConfig]:
    """The configuration of every shipped task by name."""
    folders = sorted(path.parent for path in SHIPPED.glob("*/task.toml"))
    return {folder.name: read_config(folder) for folder in folders}


def names_of_shipped_tasks() -> dict[str, str]:
    """The names and aliases of the shipped tasks, each with the name of its folder."""
    shipped = shipped_tasks().items()
    return {each: name for name, config in shipped for each in (name, *config.aliases)}


def load_task(
    task: str | os.PathLike[str] | Task | TaskRecord,
    *,
    program: str | os.PathLike[str] | None = None,
    evaluator: str | os.PathLike[str] | None = None,
    instances: int | slice | None = None,
) -> Task:
    """Loads a task.

    Args:
        task: Name or alias of a shipped task, a folder, or a task already loaded; followed by
            `:` and a name, such as `tsp:renamed`, in one of its other wordings.
        program: Initial program, where the folder keeps it under an unusual name; relative to
            the folder or to the working directory.
        evaluator: Evaluator, likewise.
        instances: How many of its data set to keep, the first ones; or a slice, such as
            `slice(40, None)` for those that a search on the first 40 has not seen; None: all.

    Raises:
        TaskError: No such task, a file or function is missing, or task.toml has a mistake.

    Example:
        >>> evo.load_task("mmd").name
        'min_max_distance'
    """
    if isinstance(task, Task):
        return _with_instances(task, instances)
    if isinstance(task, TaskRecord):
        return _with_instances(Task(task, Limits()), instances)
    if not isinstance(task, str | os.PathLike) or "\n" in os.fspath(task):
        given = "a text of several lines" if isinstance(task, str) else repr(task)
        raise TaskError(f"task: expected a name, a folder or a Task, got {given}; {_MADE_OF}")
    outer, config, wording = _find_config(task)
    folder = folder_of_files(outer)
    paths = _find_files(folder, config, program, evaluator)
    evolving = several_files(folder, config.program, paths.values(), program)
    files, encoded, omitted = read_folder(folder, {**paths, **evolving}.values(), config.files)
    files |= config_beside(outer, folder)
    names = {key: relative(folder, path) for key, path in paths.items()}
    if evolving:
        files, names["program"] = packed(files, evolving), PROGRAM_FILES
    for name in names.values():
        if name not in files:
            raise TaskError(f"{folder / name}: expected UTF-8 text below {FILE_CAP:,} bytes")
    for key in names.keys() & {"program", "evaluator"}:  # Python refuses a mark inside a text
        files[names[key]] = files[names[key]].removeprefix("\ufeff")
    if not files[names["program"]].strip():
        raise TaskError(f"{paths['program']}: the initial program is empty")
    evolves = _what_evolves(config, next(iter(evolving), names["program"]))
    isolation: Isolation = "separate"
    stages: tuple[StageRecord, ...] = ()
    if "evaluator" in names:
        place, source = paths["evaluator"], files[names["evaluator"]]
        found = stages_of(str(place), source, config, config_in(folder))
        stages, isolation = found or ((), isolation_of(place, source, config))
    noted = isolation == "separate" and NOTES_FILE in files
    if noted and wording:
        del files[NOTES_FILE]
    record = TaskRecord(
        name=config.name or outer.resolve().name,
        hash="",
        files=files,
        encoded=encoded,
        program_file=names["program"],
        evaluator_file=names.get("evaluator", ""),
        statement=(config.statement or _STATEMENTS[evolves]).strip(),
        evolves=evolves,
        isolation=isolation,
        omitted=tuple(omitted),
        instances_file=names.get("data set", ""),
        harness_file=names.get("harness", ""),
        notes_file=NOTES_FILE if noted and not wording else "",
        column=config.prompt,
        entry=config.entry or entry_in(config.language, isolation),
        stages=stages,
        program_files=config.program if isinstance(config.program, tuple) else (),
        **{key: getattr(config, key) for key in _KEPT},
    )
    loaded = finished(
        record, config.limits, str(folder / "task.toml"), references=config.references,
        asks=config.asks or None,
    )  # fmt: skip
    return _with_instances(loaded, instances)


def _what_evolves(config: TaskConfig, name: str) -> Evolves:
    """Returns whether a program or a text evolves: as stated, else by the name of its file."""
    return config.evolves or ("python" if config.language else evolves_by(name))


def finished(
    record: TaskRecord,
    limits: Limits,
    where: str,
    *,
    references: Mapping[str, float] | None = None,
    asks: object = None,
    functions: Sequence[Callable[..., object]] = (),
) -> Task:
    """Checks what was given of a task, wherever it came from, and returns the task.

    Args:
        record: Everything but its hash.
        limits: Its limits, held to the local maxima.
        where: What error messages begin with.
        references: See `Task`.
        asks: See `Task`.
        functions: What evaluates in this process, isolation `here`, of each stage.

    Raises:
        TaskError: Something is missing or does not fit.
    """
    check_record(record, where)
    try:
        record = msgspec.structs.replace(record, hash=hash_of_task(record))
    except UnicodeEncodeError as error:
        raise TaskError(f"{where}: expected valid Unicode in every text: {error}") from None
    if functions:
        record = record.evaluated_by(*functions)
    return Task(record, held(limits, where), references or {}, asks)


def _find_config(task: str | os.PathLike[str]) -> tuple[Path, TaskConfig, str]:
    """A task's folder and its configuration, in the wording that is asked for, and its name."""
    where, _, wording_name = os.fspath(task).rpartition(":")
    if plain := not where or Path(task).is_dir():
        where = os.fspath(task)
    folder, entry = _find_folder(where)
    config = read_config(folder)
    if entry and config.name is None:
        config = msgspec.structs.replace(config, name=entry)
    if plain:
        return folder, config, ""
    if wording_name not in config.wordings:
        known = ", ".join(config.wordings) or "none"
        raise TaskError(f"{folder / 'task.toml'}: no wording {wording_name!r} (it has: {known})")
    wording = config.wordings[wording_name]
    config = msgspec.structs.replace(
        config,
        name=f"{config.name or folder.resolve().name}-{wording_name}",
        statement=wording.statement,
        program=wording.program or config.program,
    )
    return folder, config, wording_name


def _find_files(
    folder: Path,
    config: TaskConfig,
    program: str | os.PathLike[str] | None,
    evaluator: str | os.PathLike[str] | None,
) -> dict[str, Path]:
    """Where program, evaluator and data set are; only the caller's own may be outside."""
    scored = config.score == "critic"
    own = LANGUAGES[config.language].suffix if config.language in LANGUAGES else ""
    named = [f"initial_program{own}", f"initial{own}"] if own else []
    wanted = {
        "program": (program, config.program, [*named, *PROGRAM_NAMES]),
        "evaluator": (evaluator, config.evaluator, () if scored else EVALUATOR_NAMES),
        "data set": (None, config.instances, ()),
        "harness": (None, config.harness, ()),
    }
    found = {}
    for what, (given, configured, usual) in wanted.items():
        if isinstance(configured, tuple):  # several files, which `several_files` finds
            continue
        if given is not None:
            found[what] = _find_file(folder, what, [folder / given, Path(given).expanduser()])
        elif configured is not None:
            found[what] = _find_file(folder, what, [inside(folder, folder / configured)])
        elif usual:
            found[what] = inside(folder, _find_file(folder, what, [folder / n for n in usual]))
    return found


def _find_file(folder: Path, what: str, places: Sequence[Path]) -> Path:
    """The first of the files that exists."""
    for place in places:
        if place.is_file():
            return place
    present = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
    options = {"program": "--program FILE", "evaluator": "--evaluator FILE"}
    raise TaskError(
        f"{folder}: no {'initial program' if what == 'program' else what}: expected "
        f"{' or '.join(map(str, places))}; the folder holds {present}; "
        f"{options.get(what, 'a key of task.toml')} names another file; {examples.minimal_task()}"
    )


def _with_instances(task: Task, wanted: int | slice | None) -> Task:
    """The task with some instances of its data set alone."""
    if wanted is None:
        return task
    record = task.record
    if not record.instances_file:
        raise TaskError(f"{record.name}: instances: this task has no data set, got {wanted!r}")
    have = len(read_instances(record))
    if not isinstance(wanted, slice):
        if not 1 <= wanted <= have:
            raise TaskError(f"{record.name}: instances: expected 1 to {have}, got {wanted!r}")
        wanted = slice(wanted)
    lines = [*filter(str.strip, record.files[record.instances_file].split("\n"))][wanted]
    if not lines:
        raise TaskError(f"{record.name}: instances: none of its {have} are within {wanted!r}")
    kept = "".join(f"{line}\n" for line in lines)
    files = {**record.files, record.instances_file: kept}
    record = msgspec.structs.replace(record, files=files)
    return finished(
        record, task.limits, record.name, references=task.references, asks=task.asks,
        functions=task.record.functions,
    )  # fmt: skip


def as_stated_now(record: TaskRecord) -> TaskRecord:
    """Returns the task of a log with the source by which its evaluator is known now.

    That of one which runs in this process held its state in earlier versions.
    """
    if record.isolation != "here":
        return record
    text = restated(short_hash(record.files.get(record.evaluator_file, "")))
    if text is None:
        return record
    files = {**record.files, record.evaluator_file: text}
    record = msgspec.structs.replace(record, files=files)
    return msgspec.structs.replace(record, hash=hash_of_task(record))


def with_function(record: TaskRecord, task: Task | None) -> TaskRecord:
    """Returns the task of a log with the function that evaluates in this process.

    Raises:
        TaskError: The task given is another one.
    """
    if task is None:
        return record
    if task.record.hash != as_stated_now(record).hash:
        raise TaskError(
            f"task: the log holds {record.name!r} {record.hash[:12]}, got {task.name!r} "
            f"{task.record.hash[:12]}: its function or what that uses changed; undo it or run anew"
        )
    return record if task.record.function is None else record.evaluated_by(*task.record.functions)


def _find_folder(task: str | os.PathLike[str]) -> tuple[Path, str]:
    """A task's folder, and the name under which a package adds it; empty: no package does."""
    text, shipped = os.fspath(task), shipped_tasks()
    names = names_of_shipped_tasks()
    if text in names:
        return SHIPPED / names[text], ""
    if text in (others := plugged_in("evo.tasks", taken=names)):
        return Path(others[text]), text
    folder = Path(text).expanduser()
    if folder.is_dir():
        return folder, ""
    if folder.exists():
        raise TaskError(f"{text}: expected a task's folder, got a file; give the folder it is in")
    hint = meant(text, [*names, *others, *map(str, folder.parent.glob("*/"))])
    known = ", ".join(
        f"{name} ({', '.join(config.aliases)})" if config.aliases else name
        for name, config in shipped.items()
    )
    known = ", ".join([known, *others])
    if len(text.split()) > 1:  # rather a text that is to evolve than a name
        hint = f"{hint}; {_MADE_OF}"
    raise TaskError(f"unknown task {text!r:.200}: expected a folder or one of {known}{hint}")
