"""Hides a key in the words of an endpoint, in every form that a server may write it in.

An endpoint that means harm can tell the key to anyone. This is about one that quotes it: in an
error, in a page, in an address or in a header that it shows.
"""

from __future__ import annotations

import base64
import functools
import re

HIDDEN = b"[key]"
LEAST_SECRET = 4
"""Characters below which a key is no secret."""

PLACEHOLDERS = frozenset({
    "api-key", "apikey", "default", "dummy", "empty", "fake", "local", "mock", "no-key", "none",
    "null", "offline", "ollama", "token", "test", "unused", "vllm",
})  # fmt: skip
"""Words that stand for a key where an endpoint asks for none; replies may hold them."""

_LEAST_CODED = 8
"""Characters of a key's base64 below which a match may be chance."""


def without_key(words: bytes, key: str) -> bytes:
    """Returns words with `[key]` in place of the key, unless that is short or a placeholder.

    The key is found as it is, in UTF-16, as a list of the numbers of its bytes, in hexadecimal
    digits, in base64 at any offset and over several lines, and with any of its characters escaped
    as in JSON, JavaScript, Python, HTML or an address, nested ones included.
    """
    if len(key) < LEAST_SECRET or key.lower() in PLACEHOLDERS:
        return words
    escaped, patterns, forms = _forms_of(key)
    for form in forms:
        words = words.replace(form, HIDDEN)
    if any(mark in words for mark in (b"\\", b"%", b"&")):
        words = escaped.sub(HIDDEN, words)
    for pattern in patterns:
        words = pattern.sub(HIDDEN, words)
    return words


@functools.lru_cache(64)
def _forms_of(
    key: str,
) -> tuple[re.Pattern[bytes], tuple[re.Pattern[bytes], ...], tuple[bytes, ...]]:
    """Returns what matches the key with characters escaped, or coded, and how it looks else."""
    raw = key.encode()
    # Backslashes before the first are many in a text that is made to be slow; further ones stay.
    escaped = re.compile((_escapes(key[0], 2) + "".join(map(_escapes, key[1:]))).encode())
    coded = [
        _SPACED.join(f"{byte:02x}" for byte in raw),
        r"\s*,\s*".join(map(str, raw)).join((r"(?<!\d)", r"(?!\d)")),
    ]
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + raw).decode()
        # Only the characters that rest on bytes of the key alone are the same wherever it stands.
        first, last = (8 * offset + 5) // 6, 8 * (offset + len(raw)) // 6
        if last - first >= _LEAST_CODED:
            coded.append(_BROKEN.join(_CODED.get(c, c) for c in text[first:last]))
    hexadecimal, *others = coded
    patterns = (
        re.compile(hexadecimal.encode(), re.IGNORECASE),
        *(re.compile(each.encode()) for each in others),
    )
    return escaped, patterns, (raw, key.encode("utf-16-le"), key.encode("utf-16-be"))


def _escapes(character: str, slashes: int = 8) -> str:
    """Returns a pattern of a character as it is, or escaped, behind up to so many backslashes."""
    code = ord(character)
    names = "".join(rf"|&(?:amp;){{0,8}}{name};" for name in _NAMED.get(character, ()))
    return (
        rf"(?:\\{{1,{slashes}}}(?:(?i:(?:u00|x|U000000){code:02x}|[ux]\{{0{{0,8}}{code:x}\}})"
        rf"|{code:03o})|(?i:%(?:25){{0,8}}(?:u00)?{code:02x}"
        rf"|&(?:amp;){{0,8}}#(?:0{{0,8}}{code}|x0{{0,8}}{code:x});?){names}"
        rf"|\\{{0,{slashes}}}{re.escape(character)})"
    )


_SPACED = r"[\s:,-]{0,2}(?:0x|\\x)?"
"""What a listing of bytes puts between their hexadecimal digits."""

_BROKEN = r"(?:(?:\\r)?\\n|\r?\n)?"
"""What ends a line of base64, in JSON too."""

_CODED = {"+": r"[+-]", "/": r"(?:_|\\?/)"}
"""Characters of base64 that differ in addresses, or are escaped in JSON."""

_NAMED = {
    "&": ("amp",), '"': ("quot",), "'": ("apos",), "<": ("lt",), ">": ("gt",), "/": ("sol",),
    "=": ("equals",), "+": ("plus",), "_": ("lowbar",), ".": ("period",), ":": ("colon",),
}  # fmt: skip
"""Names of characters in HTML."""
