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

    The key is found as it is, in UTF-16, in hexadecimal digits, in base64 at any offset, and with
    any of its characters escaped as in JSON, Python, HTML or an address, nested ones included.
    """
    if len(key) < LEAST_SECRET or key.lower() in PLACEHOLDERS:
        return words
    escaped, forms = _forms_of(key)
    for form in forms:
        words = words.replace(form, HIDDEN)
    if any(mark in words for mark in (b"\\", b"%", b"&")):
        words = escaped.sub(HIDDEN, words)
    return words


@functools.lru_cache(64)
def _forms_of(key: str) -> tuple[re.Pattern[bytes], tuple[bytes, ...]]:
    """Returns what matches the key with characters escaped, and how it looks otherwise."""
    ways = (
        rf"(?:(?i:\\{{1,8}}(?:u00|x){ord(c):02x}|%(?:25){{0,8}}{ord(c):02x}"
        rf"|&(?:amp;){{0,8}}#(?:0{{0,8}}{ord(c)}|x0{{0,8}}{ord(c):x});)"
        rf"{''.join(f'|&(?:amp;){{0,8}}{name};' for name in _NAMED.get(c, ()))}"
        rf"|\\{{0,8}}{re.escape(c)})"
        for c in key
    )
    raw = key.encode()
    forms = [raw, key.encode("utf-16-le"), key.encode("utf-16-be"), raw.hex().encode()]
    forms.append(raw.hex().upper().encode())
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + raw)
        # Only the characters that rest on bytes of the key alone are the same wherever it stands.
        first, last = (8 * offset + 5) // 6, 8 * (offset + len(raw)) // 6
        if last - first >= _LEAST_CODED:
            standard = coded[first:last]
            forms += [standard, standard.translate(bytes.maketrans(b"+/", b"-_"))]
    return re.compile("".join(ways).encode()), tuple(dict.fromkeys(forms))


_NAMED = {
    "&": ("amp",), '"': ("quot",), "'": ("apos",), "<": ("lt",), ">": ("gt",), "/": ("sol",),
    "=": ("equals",), "+": ("plus",), "_": ("lowbar",), ".": ("period",), ":": ("colon",),
}  # fmt: skip
"""Names of characters in HTML."""
