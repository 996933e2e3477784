"""Programs of several files, as the one text that a log holds.

Each file stands below a header line; the first is the one that runs, the others follow by name:

    ==== file: main.py ====
    ...
    ==== file: prompt.txt ====
    ...

A line of a file that looks like a header line is kept with a backslash before it. Files end in one
line end, so that equal files are equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase

PROGRAM_FILES = "program.files"
"""The name under which a task's record holds the text of an initial program of several files."""

_HEADER = re.compile(r"==== file: (.+) ====[ \t]*")
_ESCAPED = re.compile(r"^(?=\\*==== file: .+ ====[ \t]*$)", re.MULTILINE)
_UNESCAPED = re.compile(r"^\\(?=\\*==== file: .+ ====[ \t]*$)", re.MULTILINE)


def header_line(name: str) -> str:
    """Returns the line above a file."""
    return f"==== file: {name} ===="


def named_in(line: str) -> str | None:
    """Returns the file that a header line names; None: it is no header line."""
    found = _HEADER.fullmatch(line)
    return found[1] if found else None


def is_file_name(name: str) -> bool:
    """Whether a name is that of a file within a folder, with `/` between its parts."""
    parts = name.split("/")
    return (
        name.isprintable()
        and name == name.strip()
        and "\\" not in name
        and all(part and not part.startswith(".") for part in parts)
    )


def pack(files: Mapping[str, str]) -> str:
    """Returns several files as one text; the first stays first.

    Raises:
        ValueError: There is no file, or a name is not that of a file within a folder.

    Example:
        >>> from evo.logs.several import pack
        >>> print(pack({"main.py": "x = 1", "a.txt": "one"}), end="")
        ==== file: main.py ====
        x = 1
        ==== file: a.txt ====
        one
    """
    if not files:
        raise ValueError("expected at least one file")
    first, *others = files
    parts = []
    for name in (first, *sorted(others)):
        if not is_file_name(name):
            raise ValueError(f"expected the name of a file within a folder, got {name!r}")
        text = files[name].replace("\r\n", "\n").rstrip("\n")
        text = f"{text}\n" if text.strip() else ""
        parts.append(f"{header_line(name)}\n{_ESCAPED.sub(lambda _: chr(92), text)}")
    return "".join(parts)


def unpack(text: str) -> dict[str, str]:
    """Returns the files of a program of several, by name; the first is the one that runs.

    Args:
        text: The program, as a log holds it.

    Raises:
        ValueError: The text does not begin with a header line, or a name is no file's.

    Example:
        >>> list(evo.unpack(evo.load_task("packing_table").initial_program))
        ['main.py', 'table.txt']
    """
    files = dict[str, list[str]]()
    lines: list[str] | None = None
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        name = named_in(line.removesuffix("\n"))
        if name is not None:
            if not is_file_name(name):
                raise ValueError(f"expected the name of a file within a folder, got {name!r}")
            lines = files.setdefault(name, [])
        elif lines is None:
            raise ValueError(f"expected a line such as {header_line('main.py')!r} first")
        else:
            lines.append(line)
    if not files:
        raise ValueError("expected at least one file")
    return {name: _UNESCAPED.sub("", "".join(found)) for name, found in files.items()}


def unpacked(text: str) -> dict[str, str] | None:
    """Returns the files in a text; None where it is not one of several files."""
    if named_in(text.partition("\n")[0]) is None:
        return None
    try:
        return unpack(text)
    except ValueError:
        return None


def may_be_new(name: str, patterns: Sequence[str], taken: Collection[str] = ()) -> bool:
    """Whether a program may gain a file: its name fits a pattern and no file of the task has it."""
    return is_file_name(name) and name not in taken and fits(name, patterns)


def fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name fits one of some patterns, in which `*` stands for no `/`."""
    parts = name.split("/")
    return any(
        len(wanted := pattern.split("/")) == len(parts)
        and all(fnmatchcase(part, each) for part, each in zip(parts, wanted, strict=True))
        for pattern in patterns
    )
