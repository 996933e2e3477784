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
_KEY = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bhf_\w{20,}"
    r"|\bxox[a-z]-[\w-]{10,}|\bAIza[\w-]{30,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\bgithub_pat_\w{20,}|\beyJ[\w-]{10,200}\.eyJ[\w-]{10}|://[^\s:/@]{1,80}:[^\s:/@]{1,80}@"
    rf"|{_NAMED}{_PLACEHOLDER}\\?[\"'][^\"'\s]{{8,}}[\"']",
    re.IGNORECASE,
)
_UNQUOTED = re.compile(rf"{_NAMED}(?=[A-Za-z/+_.-]*\d)[\w/+.-]{{16,}}", re.IGNORECASE)
_SETTING = re.compile(rf"{_NAMED}{_PLACEHOLDER}[\"']?[^\s\"'#,}}]{{4,}}", re.IGNORECASE)


def holds_key(text: str, *, code: bool = True, settings: bool = False) -> bool:
    """Whether a text seems to hold a key.

    Args:
        text: The text.
        code: Whether it is source code, in which what follows a name without quotes is a name.
        settings: Whether it is a file of settings, in which short unquoted values count too.
    """
    found = _KEY.search(text) or (not code and _UNQUOTED.search(text))
    return bool(found or (settings and _SETTING.search(text)))
