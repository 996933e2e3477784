"""Recognises what seems to be a key, so that none gets into a log, which is passed on to others."""

from __future__ import annotations

import re

_NAMED = (
    r"""(?:api[_-]?key|secret|passw(?:or)?d|credential|(?:private|access|auth)[_-]?key"""
    r"""|(?:auth|access|bearer|refresh)[_-]?token|\btoken)["']?\s*[:=]\s*"""
)
_PLACEHOLDER = (
    r"""(?!["']?(?:[$<{*]|none\b|null\b|true\b|false\b|your|xxx|changeme|dummy|empty\b|os\.))"""
)
_KEYS_OF = ("api", "private", "access", "auth")
_WORDS = (
    *("secret", "passw", "credential", "token"),
    *(f"{kind}{sign}key" for kind in _KEYS_OF for sign in ("", "_", "-")),
)
_SHAPES = {
    r"\b(?:sk|pk|rk)-[\w-]{16,}": ("sk-", "pk-", "rk-"),
    r"\bAKIA[0-9A-Z]{16}\b": ("akia",),
    r"\bgh[pousr]_\w{20,}": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    r"\bhf_\w{20,}": ("hf_",),
    r"\bxox[a-z]-[\w-]{10,}": ("xox",),
    r"\bAIza[\w-]{30,}": ("aiza",),
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----": ("-----begin ",),
    r"\bgithub_pat_\w{20,}": ("github_pat_",),
    r"\beyJ[\w-]{10,200}\.eyJ[\w-]{10}": ("eyj",),
    r"://[^\s:/@]{1,80}:[^\s:/@]{1,80}@": ("://",),
    rf"{_NAMED}{_PLACEHOLDER}\\?[\"'][^\"'\s]{{8,}}[\"']": _WORDS,
}
"""What keys look like, and what a text with such a key has in it, in small letters.

A text is searched for a shape only if it has that: most have none, and a search takes long.
"""
_KEYS = [(re.compile(shape, re.IGNORECASE), words) for shape, words in _SHAPES.items()]
_UNQUOTED = re.compile(rf"{_NAMED}(?=[A-Za-z/+_.-]*\d)[\w/+.-]{{16,}}", re.IGNORECASE)
_SETTING = re.compile(rf"{_NAMED}{_PLACEHOLDER}[\"']?[^\s\"'#,}}]{{4,}}", re.IGNORECASE)


def holds_key(text: str, *, code: bool = True, settings: bool = False) -> bool:
    """Whether a text seems to hold a key.

    Args:
        text: The text.
        code: Whether it is source code, in which what follows a name without quotes is a name.
        settings: Whether it is a file of settings, in which short unquoted values count too.
    """
    small = text.lower()

    def has(words: tuple[str, ...]) -> bool:
        return any(word in small for word in words)

    if any(has(words) and shape.search(text) for shape, words in _KEYS):
        return True
    further = [_UNQUOTED] * (not code) + [_SETTING] * settings
    return bool(further) and has(_WORDS) and any(shape.search(text) for shape in further)
