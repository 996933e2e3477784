"""Programs of several files: read from a folder, given as a dict, and written back."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from evo.logs.records import TaskRecord
from evo.logs.several import PROGRAM_FILES, fits, is_file_name, pack, unpack, unpacked
from evo.tasks.folder import FILE_CAP, NOTES_FILE, TaskError, inside, relative


def files_in(folder: Path, patterns: Sequence[str], but: Collection[str] = ()) -> dict[str, Path]:
    """Returns the files of a folder that fit some patterns, the first one first, by name.

    Args:
        folder: The folder.
        patterns: Names and patterns such as `lib/*.py`; the first is the name of the file to run.
        but: Files that belong to the task and not to the program, such as its evaluator.

    Raises:
        TaskError: A name has no file, or a pattern is none of paths within the folder.
    """
    found = dict[str, Path]()
    for pattern in patterns:
        where = f"{folder / 'task.toml'}: program"
        if PurePosixPath(pattern).is_absolute() or not is_file_name(pattern):
            raise TaskError(f"{where}: expected paths within the folder, got {pattern!r}")
        named = not set(pattern) & set("*?[")
        matches = [folder / pattern] if named else sorted(folder.glob(pattern))
        if named and not matches[0].is_file():
            raise TaskError(f"{where}: no file {pattern!r} in the folder")
        for path in matches:
            name = path.relative_to(folder).as_posix()
            if path.is_file() and is_file_name(name) and (named or name not in but):
                found.setdefault(name, inside(folder, path))
    if not patterns or next(iter(found), "") != patterns[0]:
        raise TaskError(
            f"{folder / 'task.toml'}: program: expected the name of the file to run first, got "
            f"{list(patterns)!r}"
        )
    return found


def several_files(
    folder: Path, listed: object, others: Iterable[Path], instead: object
) -> dict[str, Path]:
    """Returns the files of the `program` in task.toml, by name; empty: it is one file.

    Raises:
        TaskError: A name has no file, or one file was to stand in place of several.
    """
    if not isinstance(listed, tuple):
        return {}
    if instead is not None:
        raise TaskError(
            f"{folder}: program: task.toml names several files, {', '.join(listed)}, and no other "
            "can take their place"
        )
    own = (relative(folder, path) for path in others)
    return files_in(folder, listed, {NOTES_FILE, "task.toml", *own})


def text_of_files(files: Mapping[str, Path]) -> str:
    """Returns files as the one text of a program.

    Raises:
        TaskError: A file is no text, too large or, if it is the first, empty.
    """
    texts = dict[str, str]()
    for name, path in files.items():
        try:
            texts[name] = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise TaskError(f"{path}: expected UTF-8 text") from None
    text = pack(texts)
    if len(text.encode()) > FILE_CAP:
        raise TaskError(f"program: expected files below {FILE_CAP:,} bytes together")
    if not next(iter(texts.values())).strip():
        raise TaskError(f"{next(iter(files.values()))}: the initial program is empty")
    return text


def packed(files: Mapping[str, str], evolving: Mapping[str, Path]) -> dict[str, str]:
    """Returns a task's files with those of its program as one text."""
    others = {name: text for name, text in files.items() if name not in evolving}
    return {**others, PROGRAM_FILES: text_of_files(evolving)}


def program_text(record: TaskRecord, given: str | Mapping[str, str] | Path) -> str:
    """Returns a program as its one text: as it is, from some of its files, or from a folder.

    Args:
        record: The task.
        given: A text; of a task with several files also a dict of files, where those that are left
            out are the initial program's, or a folder.

    Raises:
        TaskError: The task's programs are one text, a name fits no pattern, or a text of several
            files is wanted.
    """
    if not record.program_files:
        if isinstance(given, str):
            return given
        raise TaskError(f"{record.name}: expected one text, since its program is one file")
    if isinstance(given, Path):
        found = files_in(given, record.program_files, but=record.files)
        return text_of_files(found)
    if isinstance(given, str):
        if unpacked(given) is None:
            raise TaskError(
                f"{record.name}: its program is several files: expected a dict of them, such as "
                f"{{{record.program_files[0]!r}: ...}}, got one text without header lines"
            )
        return given
    initial = unpack(record.files[record.program_file])
    for name in given:
        if name not in initial and not (fits(name, record.program_files) and is_file_name(name)):
            raise TaskError(
                f"{record.name}: {name!r} is no file of its program, "
                f"{', '.join(record.program_files)}"
            )
    return pack({**initial, **given})


def write_files(folder: Path, program: str) -> list[Path]:
    """Writes the files of a program into a folder and returns their paths."""
    written = []
    for name, text in unpack(program).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def write_folder(folder: Path, record: TaskRecord) -> None:
    """Writes the files of a task into a folder, those of its program among them.

    Raises:
        TaskError: A name leads out of the folder, as only a forged log's does; nothing is written.
    """
    for name in (*record.files, *record.encoded):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise TaskError(f"{record.name}: expected files below the task's folder, got {name!r}")
    files = dict(record.files)
    if record.program_files:
        write_files(folder, files.pop(record.program_file))
    contents = {name: text.encode() for name, text in files.items()}
    contents |= {name: base64.b64decode(text) for name, text in record.encoded.items()}
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
