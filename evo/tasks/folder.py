"""Reads a task's folder, and decides which of its files become part of the task.

Logs are passed on to others, so a task embeds no more than it needs.

Settings are task.toml's, other tools' config.yaml's, and the evaluator's own functions. Nothing
outside the folder is read. Without a list `files` in task.toml, files of known kinds are embedded;
logs, hidden files and whatever looks like a key never are.
"""

from __future__ import annotations

import ast
import base64
import functools
import gzip
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from evo.logs import examples
from evo.logs.inputs import spelled
from evo.logs.keys import holds_key
from evo.logs.records import Bar, Evolves, Isolation, Limits
from evo.logs.types import JsonObject
from evo.parsing import parsed
from evo.plugins import meant
from evo.tasks.their_config import INPUT, config_name, their_config
from evo.warning import and_more, warn

Picture = Literal["", "circles", "points", "triangle"]
_NEEDED = {"separate": "score(value) -> dict", "shared": "evaluate(program_path) -> dict"}
NOTES_FILE = "evaluator_notes.py"
"""File that may define `notes(value)`, or `notes(value, instance)` where there is a data set: what
to tell the model of a value. It is no part of the hash, and other wordings go without it."""
FILE_CAP = 1 << 20  # bytes of one embedded file
_SHOWN = 20  # of what is left out
TOTAL_CAP = 8 << 20  # bytes of all embedded files
KINDS = (
    ".bin .c .cfg .cpp .csv .dat .h .ini .ipynb .j2 .jl .json .jsonl .mat .md .npy .npz .parquet "
    ".pickle .pkl .py .pyi .r .rs .rst .sh .sql .tex .toml .tsv .txt .xml .yaml .yml"
)
"""Endings of files that programs and evaluators are known to need."""
_IGNORED_FOLDERS = frozenset({"__pycache__", "node_modules", "openevolve_output", "checkpoints"})
_UNREMARKABLE = frozenset({".DS_Store", ".gitattributes", ".gitignore", ".gitkeep"})
_OWN = frozenset({"sweep.json", "selection.json"})  # beside the logs of a sweep
_LOG = b'{"crc":"'  # how every line of a log and of a journal begins
_KEY_NAMES = ("*.env", "*.key", "*.pem", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "*credential*",
              "*secret*", "*password*", "*api_key*", "*apikey*", "*.netrc", "dotenv*",
              "keys.[jty]*")  # fmt: skip
_CODE = frozenset({".py", ".pyi", ".c", ".cpp", ".h", ".jl", ".r", ".rs"})  # names, not values
_SETTINGS = frozenset({".cfg", ".ini", ".json", ".toml", ".yaml", ".yml"})
_TASK_TOML = examples.minimal(examples.TASK_TOML)


class TaskError(ValueError):
    """A task cannot be loaded; the message states what was expected and where.

    Example:
        >>> try:
        ...     evo.load_task("nowhere")
        ... except evo.TaskError as error:
        ...     print(str(error)[:22])
        unknown task 'nowhere'
    """


class Wording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another wording of a task; what evolves and how it is evaluated stay the same."""

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
        statement: The description of the program's purpose in the prompt.
        entry: Function names tried in order.
        evolves: `python` or `text`.
        isolation: `separate` or `shared`; if missing, by the function that the evaluator defines.
            With `shared` a program can read the evaluator and all files of the task, held-out
            answers included, and forge its score.
        picture: How a construction is drawn.
        language: Of the program, where it is not Python: c, cpp, rust, go, julia, javascript, sql,
            r, lua or bash. It is compiled and run in the sandbox: it reads its input on standard
            input, and what it prints is scored.
        program: File of the initial program; or a list of files and patterns, such as
            `["main.py", "lib/*.py", "prompt.txt"]`, where several files evolve together. The first
            is the one that runs.
        evaluator: File of the evaluator.
        instances: File of the data set; see `evo.runs.dataset`.
        files: What else the task needs, paths and patterns such as `data/*.csv`; if missing, all
            files of the folder of known kinds.
        harness: File that is run after the program and may define the entry (with instances).
        scale: `unit` if fitness lies between 0 and 1, so that policies may take it as it is.
        fitness_key: The metric that is the fitness, where an evaluator that is given the program's
            path does not call it `combined_score`.
        private: Metrics that no prompt, policy or search may see.
        scores: `unit` if scores on instances lie between 0 and 1 and one that is missing counts as
            0; `any` if they are any numbers.
        missing: What an instance without a score counts, where scores are any numbers; without it
            a program that fails on one has no fitness.
        prompt: The name of what a model is asked or a program is given in the rows of the data set,
            where it is not `prompt` or `input`.
        asks: Name of the model that is asked instances under a text; that of the run if missing.
        score: `critic` if a model scores the replies on instances; there is no evaluator then.
        critic: Name of that model, unless a run names another.
        rubric: What it is asked to look at.
        thresholds: Of an evaluator with `stages = [cheap, thorough]`: what admits to the next one,
            for each but the last, a number or "parent", to be better there than the parent.
        stage_limits: Limits of each stage; if missing, `limits`.
        references: Fitness of textbook rules and of the best known, by name, for pictures.
        wordings: Other statements, and programs, by name; `load_task("task:name")` loads one.
        limits: Limits of an evaluation; with `seconds = "auto"` each run fixes its time limit.
    """

    name: str | None = None
    aliases: tuple[str, ...] = ()
    title: str = ""
    statement: str | None = None
    entry: tuple[str, ...] = ()
    evolves: Evolves | None = None
    isolation: Isolation | None = None
    picture: Picture = ""
    language: str = ""
    program: str | tuple[str, ...] | None = None
    evaluator: str | None = None
    instances: str | None = None
    files: tuple[str, ...] | None = None
    harness: str | None = None
    scale: Literal["unit"] | None = None
    fitness_key: str = ""
    private: tuple[str, ...] = ()
    scores: Literal["unit", "any"] = "unit"
    missing: float | None = None
    prompt: str = ""
    asks: str = ""
    score: Literal["evaluator", "critic"] = "evaluator"
    critic: str = ""
    rubric: str = ""
    thresholds: tuple[Bar, ...] = ()
    stage_limits: tuple[Limits, ...] = ()
    references: dict[str, float] = {}
    wordings: dict[str, Wording] = {}
    limits: Limits = Limits()


def read_config(folder: Path) -> TaskConfig:
    """Reads task.toml; another tool's config.yaml fills in what that does not state."""
    path = folder / "task.toml"
    raw = _parse(folder, path, "TOML", tomllib.loads)
    limits = spelled(raw["limits"]) if isinstance(raw.get("limits"), dict) else {}
    for prefix, table, names in (
        ("", raw, TaskConfig.__struct_fields__),
        ("limits.", limits, Limits.__struct_fields__),
    ):
        for key in (key for key in table if key not in names):
            hint = meant(key, names, prefix)
            allowed = ", ".join(prefix + name for name in names)
            raise TaskError(
                f"{path}: unknown key {prefix + key!r}{hint} (allowed: {allowed}); {_TASK_TOML}"
            )
    try:
        config = msgspec.convert({**raw, "limits": limits or raw.get("limits", {})}, TaskConfig)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        choices = (
            f"(evolves: {' or '.join(get_args(Evolves))}; isolation: "
            f"{' or '.join(get_args(Isolation))}; picture: {', '.join(get_args(Picture)[1:])})"
        )
        raise TaskError(f"{path}: {error} {choices}; {_TASK_TOML}") from None
    theirs = their_config(config_in(folder))
    if theirs.seconds is not None and "seconds" not in limits:
        config = replace(config, limits=replace(config.limits, seconds=theirs.seconds))
    return replace(
        config,
        statement=config.statement or theirs.statement,
        fitness_key=config.fitness_key or theirs.fitness_key,
        language=config.language or theirs.language,
        program=config.program if config.program is not None else theirs.program,
        evaluator=config.evaluator or theirs.evaluator,
    )


def folder_of_files(folder: Path) -> Path:
    """Returns where a task's files are: in CodeEvolve's layout `input`, beside its config.yaml."""
    within, above = folder / INPUT, folder.resolve().parent
    if folder.resolve().name == INPUT and not config_file(folder) and (path := config_file(above)):
        warn(f"{folder}: {path.name} beside it is not read; {above} takes both for a task")
    if (folder / "task.toml").exists() or not within.is_dir():
        return folder
    theirs = their_config(config_in(folder))
    alone = theirs.of_codeevolve and not (folder / (theirs.evaluator or "evaluate.py")).exists()
    return within if alone else folder


def config_file(folder: Path) -> Path | None:
    """Returns the config.yaml of another tool in a folder; None if there is none."""
    name = config_name(path.name for path in folder.glob("config*.y*ml") if path.is_file())
    return None if name is None else folder / name


def config_beside(outer: Path, folder: Path) -> dict[str, str]:
    """The config.yaml of another tool that lies beside a task's files, by name, unless with a key.

    Args:
        outer: The folder that was given.
        folder: That of the files.
    """
    path = None if outer == folder else config_file(outer)
    if path is None or holds_key(text := path.read_text(encoding="utf-8"), settings=True):
        return {}
    return {path.name: text}


def config_in(folder: Path) -> JsonObject:
    """Returns what another tool's config.yaml in a folder states; empty if there is none."""
    path = config_file(folder)
    if path is None:
        return {}
    import yaml

    return _parse(folder, path, "YAML", yaml.safe_load, yaml.YAMLError)


def isolation_of(path: Path, source: str, config: TaskConfig) -> Isolation:
    """Decides by the functions that the evaluator has."""
    try:
        names = _names_in(path.name, source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # nested too deep
        raise TaskError(
            f"{path}: the evaluator is not valid Python: {error}; "
            f"{examples.minimal(examples.EVALUATOR)}"
        ) from None
    wanted: list[Isolation] = ["separate", "shared"] if config.entry else ["shared", "separate"]
    if config.isolation is not None:
        wanted = [config.isolation]
    for isolation in wanted:
        if _NEEDED[isolation].partition("(")[0] in names:
            return isolation
    expected = " or ".join(_NEEDED[isolation] for isolation in wanted)
    raise TaskError(
        f"{path}: expected a function {expected}, found "
        f"{', '.join(sorted(names)) or 'no function'}; {examples.minimal(examples.EVALUATOR)}"
    )


@functools.lru_cache(64)  # a process that makes many runs reads few evaluators
def _names_in(file: str, source: str) -> frozenset[str]:
    """Returns the names that an evaluator defines; a `main` that writes results is `evaluate`."""
    names = set[str]()
    for node in ast.walk(parsed(source, file)):
        match node:
            case ast.alias():
                names.add(node.asname or node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.FunctionDef(name="main") | ast.AsyncFunctionDef(name="main"):
                writes = writes_results([argument.arg for argument in node.args.args])
                names.add("evaluate" if writes else "main")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
    return frozenset(names)


def evolves_by(name: str) -> Evolves:
    """Returns what evolves in a file of this name."""
    return "python" if name.endswith(".py") else "text"


def writes_results(parameters: Sequence[str]) -> bool:
    """Whether an evaluator's function is given a place to write its results to."""
    return len(parameters) >= 2 and parameters[1].startswith(("result", "output", "save"))


def inside(folder: Path, path: Path) -> Path:
    """The path, if neither it nor a link in it leads out of the folder."""
    try:
        real = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        real = path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, no name of a file
        raise TaskError(f"{path}: expected a file of the task's folder: {error}") from None
    if not real.is_relative_to(folder.resolve()):
        raise TaskError(
            f"{path}: expected a file of the task's folder, but it leads to {str(real)!r}, which "
            "is outside and is not read; copy it into the folder"
        )
    return path


def _parse(
    folder: Path, path: Path, what: str, parse: Callable[[str], object], *wrong: type[Exception]
) -> JsonObject:
    """The content of a file of settings, empty if there is none."""
    if not inside(folder, path).exists():
        return {}
    if not path.is_file() or (size := path.stat().st_size) > FILE_CAP:
        got = f"{size:,} bytes" if path.is_file() else "something else"
        raise TaskError(f"{path}: expected a file of at most {FILE_CAP:,} bytes, got {got}")
    expected: tuple[type[Exception], ...] = (ValueError, RecursionError, OSError, *wrong)
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except expected as error:
        shown = f"; {_TASK_TOML}" if what == "TOML" else ""
        raise TaskError(f"{path}: not readable as {what}: {error}{shown}") from None
    return content if isinstance(content, dict) else {}


def relative(folder: Path, path: Path) -> str:
    """The path within the folder; a file from elsewhere goes by its name."""
    try:
        return path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return PurePosixPath(path.name).as_posix()


def read_folder(
    folder: Path, required: Iterable[Path], declared: Sequence[str] | None
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Reads the files that a task embeds, by relative path, and reports those left out.

    What is `required` (program, evaluator, data set) is embedded whatever it is, and so is a file
    that is `declared`, even if it seems to hold a key; None: files of known kinds. Returns texts,
    other files in base64, and the names of those that are too large.
    """
    found = {relative(folder, path): path for path in required}
    needed = {*found, *(declared or ())}  # named one by one
    left_out = _add_others(found, folder, declared)
    files: dict[str, str] = {}
    encoded: dict[str, str] = {}
    omitted: list[str] = []
    total = 0
    for name, path in found.items():
        size = path.stat().st_size
        if size > FILE_CAP or total + size > TOTAL_CAP:
            omitted.append(name)
            most = f"a file may have {FILE_CAP:,} bytes, a task {TOTAL_CAP:,}"
            left_out.append(f"{name} (too large: {most})")
            continue
        content = path.read_bytes()
        if _holds_key(path, content):
            if name not in needed:
                left_out.append(f"{name} (seems to hold a key)")
                continue
            warn(f"{path}: seems to hold a key, and becomes part of every log")
        try:
            files[name] = content.decode("utf-8")
        except UnicodeDecodeError:
            encoded[name] = base64.b64encode(content).decode("ascii")
        total += size
    if left_out:
        warn(
            f"{folder}: not embedded in the task: {and_more(left_out, _SHOWN)}; a list "
            "`files` in task.toml lists what is",
        )
    return dict(sorted(files.items())), dict(sorted(encoded.items())), omitted


def _add_others(found: dict[str, Path], folder: Path, declared: Sequence[str] | None) -> list[str]:
    """Adds the files of a folder that are embedded; returns those that are not, with reasons."""
    left_out: list[str] = []
    for path in _walk(folder) if declared is None else _declared(folder, declared):
        name = path.relative_to(folder).as_posix()
        if name in found or path.name in _UNREMARKABLE:
            continue
        known = declared is not None or path.suffix.lower() in KINDS.split()
        if known or path.is_symlink():
            inside(folder, path)
        if reason := _reason_against(path, name, known):
            left_out.append(f"{name if name.isprintable() else repr(name)} ({reason})")
        else:
            found[name] = path
    return left_out


def _walk(folder: Path) -> Iterator[Path]:
    """The regular files of a folder, in order; links to folders are not followed."""
    for root, folders, names in os.walk(folder):
        kept = sorted(n for n in folders if n not in _IGNORED_FOLDERS and n[0] != ".")
        for name in kept:
            inside(folder, Path(root, name))
        folders[:] = [name for name in kept if not Path(root, name, "pyvenv.cfg").exists()]
        yield from (Path(root, name) for name in sorted(names) if Path(root, name).is_file())


def _declared(folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise TaskError(
                f"{folder / 'task.toml'}: files: expected paths within the folder, got {pattern!r}"
            )
        try:
            matches = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
        except (OSError, ValueError, IndexError) as error:
            raise TaskError(f"{folder / 'task.toml'}: files: {pattern!r}: {error}") from None
        if not matches:
            raise TaskError(f"{folder / 'task.toml'}: files: nothing matches {pattern!r}")
        yield from matches
    if (folder / "task.toml").is_file():
        yield folder / "task.toml"


def _reason_against(path: Path, name: str, known: bool) -> str:
    """Why a file is not embedded, by its name and its beginning; empty: it is."""
    if path.name.startswith("."):
        return "hidden"
    if path.suffix != ".py" and any(fnmatch(path.name.lower(), each) for each in _KEY_NAMES):
        return "its name is that of a key"
    if path.name.endswith(".stop") or path.name in _OWN or _is_log(path):
        return "a log, or beside one"
    if not known:
        return "of no known kind"
    return "its name is not UTF-8" if any("\ud800" <= sign <= "\udfff" for sign in name) else ""


def _is_log(path: Path) -> bool:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return False
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return file.read(len(_LOG)) in (_LOG, b"")
    except (OSError, EOFError):
        return False


def _holds_key(path: Path, content: bytes) -> bool:
    """Whether a file seems to hold a key; of one that is no text only certain shapes are seen."""
    kind = path.suffix.lower()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return holds_key(content.replace(b"\0", b"").decode("latin-1"))
    return holds_key(text, code=kind in _CODE, settings=kind in _SETTINGS)
