"""Languages of files, as data."""

from __future__ import annotations

from pathlib import PurePosixPath

FENCES = {
    ".py": "python", ".txt": "text", ".md": "markdown", ".json": "json", ".toml": "toml",
    ".yaml": "yaml", ".yml": "yaml", ".c": "c", ".h": "c", ".cpp": "cpp", ".rs": "rust",
    ".go": "go", ".jl": "julia", ".js": "javascript", ".sql": "sql", ".sh": "bash", ".html": "html",
}  # fmt: skip
"""The word behind the fence of a code block, by the ending of a file's name."""


def fence_of(name: str) -> str:
    """Returns the word behind the fence of a file's code block."""
    return FENCES.get(PurePosixPath(name).suffix.lower(), "text")
