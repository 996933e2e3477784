"""Languages of programs and files, as data: to know one more, add a line to a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

ENTRY = "evo_program"
"""What a program in another language is called by whatever calls it."""

KEEPS_FORM = "Keep the form of what it reads and of what it prints."
"""The sentence of their prompts about what may not change."""


@dataclass(frozen=True)
class Language:
    """A language other than Python in which programs may be written.

    Attributes:
        fences: Words behind the fence of a code block, the one that a prompt uses first.
        suffix: Of a file's name.
        lexer: Its name for Pygments.
        tools: Names of compilers or interpreters, of which the first that is found is used.
        build: Arguments of the compiler, with `{source}` and `{program}`; none: it is interpreted.
        run: Arguments of the interpreter, with `{source}`; of what is compiled, none.
        install: What to install where no tool is found.
    """

    fences: tuple[str, ...]
    suffix: str
    lexer: str
    tools: tuple[str, ...]
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    install: str = ""


_CC = ("-O2", "-o", "{program}", "{source}", "-lm")

LANGUAGES = {
    "c": Language(("c", "h"), ".c", "c", ("cc", "gcc", "clang"), _CC,
                  install="apt-get install gcc libc6-dev"),
    "cpp": Language(("cpp", "c++", "cc", "cxx"), ".cpp", "cpp", ("c++", "g++", "clang++"),
                    _CC, install="apt-get install g++"),
    "rust": Language(("rust", "rs"), ".rs", "rust", ("rustc",),
                     ("-O", "-o", "{program}", "{source}"), install="apt-get install rustc"),
    "go": Language(("go", "golang"), ".go", "go", ("go",),
                   ("build", "-o", "{program}", "{source}"), install="apt-get install golang-go"),
    "julia": Language(("julia", "jl"), ".jl", "julia", ("julia",),
                      run=("--startup-file=no", "{source}"),
                      install="julia from julialang.org below /usr/local"),
    "javascript": Language(("javascript", "js"), ".js", "javascript", ("node", "nodejs"),
                           run=("{source}",), install="apt-get install nodejs"),
    "sql": Language(("sql", "sqlite"), ".sql", "sql", ("sqlite3",),
                    run=("-batch", ":memory:", ".read {source}"),
                    install="apt-get install sqlite3"),
    "r": Language(("r",), ".R", "r", ("Rscript",), run=("{source}",),
                  install="apt-get install r-base-core"),
    "lua": Language(("lua",), ".lua", "lua", ("lua", "lua5.4"), run=("{source}",),
                    install="apt-get install lua5.4"),
    "bash": Language(("bash", "sh", "shell"), ".sh", "bash", ("bash",), run=("{source}",),
                     install="apt-get install bash"),
}  # fmt: skip
"""The languages other than Python, by name."""

_FENCES = {
    ".py": "python", ".txt": "text", ".md": "markdown", ".json": "json", ".toml": "toml",
    ".yaml": "yaml", ".yml": "yaml", ".h": "c", ".html": "html",
} | {each.suffix.lower(): each.fences[0] for each in LANGUAGES.values()}  # fmt: skip


def fence_of(name: str) -> str:
    """Returns the word behind the fence of a file's code block."""
    return _FENCES.get(PurePosixPath(name).suffix.lower(), "text")


def named(fence: str) -> str:
    """Returns the language that a word behind a fence stands for; empty: none of these."""
    return next((name for name, each in LANGUAGES.items() if fence in each.fences), "")
