"""What of a task's folder becomes part of the task: logs are passed on, so nothing else may.

Nothing outside the folder is read. Without a list `files` in task.toml, files of known kinds are
embedded; logs, hidden files and whatever looks like a key never are.
"""

from __future__ import annotations

import base64
import gzip
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

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
_NAMED = (
    r"""(?:api[_-]?key|secret|passw(?:or)?d|credential|(?:private|access|auth)[_-]?key"""
    r"""|(?:auth|access|bearer|refresh)[_-]?token|\btoken)["']?\s*[:=]\s*"""
)
_PLACEHOLDER = (
    r"""(?!["']?(?:[$<{*]|none\b|null\b|true\b|false\b|your|xxx|changeme|dummy|empty\b|os\.))"""
)
_KEY = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bhf_\w{20,}"
    r"|\bxox[a-z]-[\w-]{10,}|\bAIza[\w-]{30,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\bgithub_pat_\w{20,}|\beyJ[\w-]{10,200}\.eyJ[\w-]{10}|://[^\s:/@]{1,80}:[^\s:/@]{1,80}@"
    rf"|{_NAMED}{_PLACEHOLDER}\\?[\"'][^\"'\s]{{8,}}[\"']",
    re.IGNORECASE,
)
_UNQUOTED = re.compile(rf"{_NAMED}(?=[A-Za-z/+_.-]*\d)[\w/+.-]{{16,}}", re.IGNORECASE)
_CODE = frozenset({".py", ".pyi", ".c", ".cpp", ".h", ".jl", ".r", ".rs"})  # names, not values
_SETTING = re.compile(rf"{_NAMED}{_PLACEHOLDER}[\"']?[^\s\"'#,}}]{{4,}}", re.IGNORECASE)
_SETTINGS = frozenset({".cfg", ".ini", ".json", ".toml", ".yaml", ".yml"})


class TaskError(ValueError):
    """A task cannot be loaded; the message says what was expected and where."""


@dataclass
class Contents:
    """What a task embeds of its folder.

    Attributes:
        files: Text files by relative path.
        encoded: Other files, base64, by relative path.
        omitted: Files that are too large to embed.
    """

    files: dict[str, str] = field(default_factory=dict)
    encoded: dict[str, str] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)


def writes_results(parameters: Sequence[str]) -> bool:
    """Whether an evaluator's function is given a place to write its results to."""
    return len(parameters) >= 2 and parameters[1].startswith(("result", "output", "save"))


def inside(folder: Path, path: Path) -> Path:
    """Returns the path if it leads to nothing outside the folder.

    Raises:
        TaskError: It does, itself or through a symbolic link.
    """
    try:
        real = path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, no name of a file
        raise TaskError(f"{path}: expected a file of the task's folder: {error}") from None
    if not real.is_relative_to(folder.resolve()):
        raise TaskError(
            f"{path}: expected a file of the task's folder, but it leads to {str(real)!r}, which "
            "is outside and is not read; copy it into the folder"
        )
    return path


def read_text(folder: Path, path: Path) -> str | None:
    """Returns the text of a file of settings; None if there is none.

    Raises:
        TaskError: It is no file, too large, or leads to somewhere outside the folder.
        OSError, UnicodeDecodeError: It cannot be read.
    """
    if not inside(folder, path).exists():
        return None
    if not path.is_file() or (size := path.stat().st_size) > FILE_CAP:
        got = f"{size:,} bytes" if path.is_file() else "something else"
        raise TaskError(f"{path}: expected a file of at most {FILE_CAP:,} bytes, got {got}")
    return path.read_text(encoding="utf-8")


def relative(folder: Path, path: Path) -> str:
    """Returns the path within the folder; a file from elsewhere goes by its name."""
    try:
        return path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return PurePosixPath(path.name).as_posix()


def read_folder(folder: Path, required: Iterable[Path], declared: Sequence[str] | None) -> Contents:
    """Reads what a task embeds, and says what is left out.

    Args:
        folder: The task's.
        required: Program, evaluator and data set, already found; embedded whatever they are.
        declared: Paths and patterns of task.toml's `files`; None: files of known kinds. A file
            that is named is embedded even if it seems to hold a key.

    Raises:
        TaskError: A file leads to somewhere outside the folder, or none is as declared.
    """
    found = {relative(folder, path): path for path in required}
    needed = {*found, *(declared or ())}  # named one by one
    left_out: list[str] = []
    for path in _walk(folder) if declared is None else _declared(folder, declared):
        name = path.relative_to(folder).as_posix()
        if name in found or path.name in _UNREMARKABLE:
            continue
        if (
            known := declared is not None or path.suffix.lower() in KINDS.split()
        ) or path.is_symlink():
            inside(folder, path)
        if reason := _reason_against(path, known) or _unwritable(name):
            left_out.append(f"{name if name.isprintable() else repr(name)} ({reason})")
        else:
            found[name] = path
    contents = Contents()
    total = 0
    for name, path in found.items():
        size = path.stat().st_size
        if size > FILE_CAP or total + size > TOTAL_CAP:
            contents.omitted.append(name)
            left_out.append(f"{name} (too large: a file may have {FILE_CAP:,} bytes, a task "
                            f"{TOTAL_CAP:,})")  # fmt: skip
            continue
        content = path.read_bytes()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            if name not in needed and _KEY.search(content.replace(b"\0", b"").decode("latin-1")):
                left_out.append(f"{name} (seems to hold a key)")
                continue
            contents.encoded[name] = base64.b64encode(content).decode("ascii")
        else:
            if _holds_key(path, text):
                if name not in needed:
                    left_out.append(f"{name} (seems to hold a key)")
                    continue
                warnings.warn(
                    f"{path}: seems to hold a key, and becomes part of every log", stacklevel=4
                )
            contents.files[name] = text
        total += size
    if left_out:
        warnings.warn(
            f"{folder}: not embedded in the task: {', '.join(left_out[:_SHOWN])}"
            f"{f' and {len(left_out) - _SHOWN} more' if len(left_out) > _SHOWN else ''}; a list "
            "`files` in task.toml says what is",
            stacklevel=4,
        )
    contents.files = dict(sorted(contents.files.items()))
    contents.encoded = dict(sorted(contents.encoded.items()))
    return contents


def _walk(folder: Path) -> Iterator[Path]:
    """Yields the regular files of a folder, in order; links to folders are not followed."""
    for root, folders, names in os.walk(folder):
        kept = [
            name
            for name in sorted(folders)
            if name not in _IGNORED_FOLDERS and not name.startswith(".")
        ]
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


def _reason_against(path: Path, known: bool) -> str:
    """Returns why a file is not embedded, by its name and its beginning; empty: it is."""
    if path.name.startswith("."):
        return "hidden"
    if path.suffix != ".py" and any(fnmatch(path.name.lower(), name) for name in _KEY_NAMES):
        return "its name is that of a key"
    if path.name.endswith(".stop") or path.name in _OWN or _is_log(path):
        return "a log, or beside one"
    return "" if known else "of no known kind"


def _unwritable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return ""


def _is_log(path: Path) -> bool:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return False
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return file.read(len(_LOG)) in (_LOG, b"")
    except (OSError, EOFError):
        return False


def _holds_key(path: Path, text: str) -> bool:
    kind = path.suffix.lower()
    found = _KEY.search(text) or (kind not in _CODE and _UNQUOTED.search(text))
    return bool(found or (kind in _SETTINGS and _SETTING.search(text)))
