"""A key is hidden however a server spells it."""

import base64
import html
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.models.hiding import HIDDEN, without_key

keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=10, max_size=40)


def percent(key: str) -> str:
    return "".join(f"%{ord(c):02x}" for c in key)


SPELT = {
    "as it is": lambda key: key,
    "JSON": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "Python": lambda key: "".join(f"\\x{ord(c):02x}" for c in key),
    "percent": percent,
    "percent twice": lambda key: quote(percent(key)),
    "HTML": html.escape,
    "HTML in decimal digits": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "HTML in hexadecimal digits": lambda key: "".join(f"&#x{ord(c):X};" for c in key),
    "HTML of a slash and an equals sign": (
        lambda key: html.escape(key).replace("/", "&sol;").replace("=", "&equals;")
    ),
    "HTML twice": lambda key: html.escape("".join(f"&#{ord(c)};" for c in key)),
    "hexadecimal digits": lambda key: key.encode().hex(),
}


@pytest.mark.parametrize("name", SPELT)
@given(key=keys)
def test_a_key_is_hidden_however_its_characters_are_escaped(name: str, key: str) -> None:
    spelt = SPELT[name](key)
    assert without_key(f"bad ({spelt})".encode(), key) == b"bad (" + HIDDEN + b")"


@given(key=keys, before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_nothing_of_a_key_is_left_of_base64_but_its_ends(
    key: str, before: bytes, after: bytes
) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        left = without_key(encode(before + key.encode() + after), key)
        assert left.count(HIDDEN) == 1
        hidden = len(encode(before + key.encode() + after)) - len(left.replace(HIDDEN, b""))
        assert hidden >= 8 * len(key) // 6 - 1


@given(words=st.binary(max_size=300))
def test_words_without_a_key_stay_as_they_are(words: bytes) -> None:
    assert without_key(words, "sk-Zq9/secretKEY+7f3a==") == words


@pytest.mark.parametrize("key", ["none", "test", "EMPTY", "x", "ollama"])
def test_a_word_that_stands_for_a_key_is_left_in_replies(key: str) -> None:
    assert without_key(f"import py{key}".encode(), key) == f"import py{key}".encode()
