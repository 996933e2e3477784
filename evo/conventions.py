"""What the files of a task's folder say: task.toml, other tools' config.yaml, the evaluator."""

from __future__ import annotations

import ast
import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from evo.folder import TaskError, read_text, writes_results
from evo.records import Evolves, Isolation, Limits

CONFIG_NAMES = ("config.yaml", "config.yml")
_NEEDED = {"separate": "score(value) -> dict", "shared": "evaluate(program_path) -> dict"}
Picture = Literal["", "circles", "points", "triangle"]

_LONG = 1e18  # seconds: no time limit at all

T = TypeVar("T")


class Wording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task told otherwise: what evolves and how it is judged stay the same.

    Attributes:
        statement: What the prompt says the program is for.
        program: File of the initial program; None: the task's.
    """

    statement: str
    program: str | None = None


class TaskConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The keys of task.toml, all optional.

    Attributes:
        name: Name of the task; the folder's name if missing.
        aliases: Other names of a shipped task.
        title: A few words for tables.
        statement: What the prompt says the program is for.
        entry: Function names tried in order.
        evolves: `python` or `text`.
        isolation: `separate` or `shared`; if missing, by the function that the evaluator defines.
        picture: How a construction is drawn.
        program: File of the initial program.
        evaluator: File of the evaluator.
        instances: File of the data set; see `evo.runs.instances`.
        files: What else the task needs, paths and patterns such as `data/*.csv`; if missing, all
            files of the folder of known kinds.
        harness: File that is run after the program and may define the entry (with instances).
        scale: `unit` if fitness lies between 0 and 1, so that policies may take it as it is.
        private: Metrics that no prompt, policy or search may see.
        references: Fitness of textbook rules and of the best known, by name, for pictures.
        wordings: The task told otherwise, by name; `load_task("task:name")` loads one.
        limits: Limits of an evaluation.
    """

    name: str | None = None
    aliases: tuple[str, ...] = ()
    title: str = ""
    statement: str | None = None
    entry: tuple[str, ...] = ()
    evolves: Evolves | None = None
    isolation: Isolation | None = None
    picture: Picture = ""
    program: str | None = None
    evaluator: str | None = None
    instances: str | None = None
    files: tuple[str, ...] | None = None
    harness: str | None = None
    scale: Literal["unit"] | None = None
    private: tuple[str, ...] = ()
    references: dict[str, float] = {}
    wordings: dict[str, Wording] = {}
    limits: Limits = Limits()


def read_config(folder: Path) -> TaskConfig:
    """Reads task.toml; another tool's config.yaml gives a statement and a time limit it leaves out.

    Raises:
        TaskError: A key is unknown or its value is not as expected.
    """
    path = folder / "task.toml"
    raw: dict[str, Any] = {}
    try:
        if (text := read_text(folder, path)) is not None:
            raw = tomllib.loads(text)
    except TaskError:
        raise
    except (ValueError, RecursionError, OSError) as error:
        raise TaskError(f"{path}: not readable as TOML: {error}") from None
    limits = raw["limits"] if isinstance(raw.get("limits"), dict) else {}
    tables: tuple[tuple[str, Mapping[str, Any], type[msgspec.Struct]], ...] = (
        ("", raw, TaskConfig),
        ("limits.", limits, Limits),
    )
    for prefix, table, struct in tables:
        for key in table:
            if key not in struct.__struct_fields__:
                close = difflib.get_close_matches(key, struct.__struct_fields__, n=1)
                hint = f"; did you mean {prefix + close[0]!r}?" if close else ""
                allowed = ", ".join(prefix + name for name in struct.__struct_fields__)
                raise TaskError(f"{path}: unknown key {prefix + key!r}{hint} (allowed: {allowed})")
    try:
        config = msgspec.convert(raw, TaskConfig)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        choices = (
            f"(evolves: {' or '.join(get_args(Evolves))}; isolation: "
            f"{' or '.join(get_args(Isolation))}; picture: {', '.join(get_args(Picture)[1:])})"
        )
        raise TaskError(f"{path}: {error} {choices}") from None
    statement, seconds = _foreign(folder)
    if seconds is not None and "seconds" not in limits:
        config = replace(config, limits=replace(config.limits, seconds=seconds))
    return replace(config, statement=config.statement or statement)


def isolation_of(path: Path, source: str, config: TaskConfig) -> Isolation:
    """Decides by the functions that the evaluator has."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # nested too deep
        raise TaskError(f"{path}: the evaluator is not valid Python: {error}") from None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            if node.name == "main" and not isinstance(node, ast.ClassDef):
                arguments = [argument.arg for argument in node.args.args]
                names |= {"evaluate"} if writes_results(arguments) else set()  # ShinkaEvolve's
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    if config.isolation is not None:
        wanted: tuple[Isolation, ...] = (config.isolation,)
    else:
        wanted = ("separate", "shared") if config.entry else ("shared", "separate")
    for isolation in wanted:
        if _NEEDED[isolation].partition("(")[0] in names:
            return isolation
    expected = " or ".join(_NEEDED[isolation] for isolation in wanted)
    raise TaskError(
        f"{path}: expected a function {expected}, found {', '.join(sorted(names)) or 'no function'}"
    )


def _foreign(folder: Path) -> tuple[str | None, float | None]:
    """Returns the system message and the evaluator's time limit of an OpenEvolve config.yaml."""
    paths = [folder / name for name in CONFIG_NAMES] + sorted(folder.glob("config*.y*ml"))
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return None, None
    import yaml

    try:
        content = yaml.safe_load(read_text(folder, path) or "")
    except TaskError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError, OSError) as error:
        raise TaskError(f"{path}: not readable as YAML: {error}") from None

    def get(*keys: str, kind: type[T]) -> T | None:
        value: Any = content
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, kind) and not isinstance(value, bool) else None

    statement = get("prompt", "system_message", kind=str) or get("system_message", kind=str)
    seconds = get("evaluator", "timeout", kind=int) or get("evaluator", "timeout", kind=float)
    return statement, float(seconds) if seconds and 0 < seconds < _LONG else None
