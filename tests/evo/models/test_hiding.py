"""A key is hidden however a server spells it."""

import base64
import html
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import thorough_after

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
    "HTML without semicolons": lambda key: "".join(f"&#{ord(c):03d}" for c in key),
    "Python in eight digits": lambda key: "".join(f"\\U{ord(c):08x}" for c in key),
    "octal digits": lambda key: "".join(f"\\{ord(c):03o}" for c in key),
    "JavaScript in braces": lambda key: "".join(f"\\u{{{ord(c):x}}}" for c in key),
    "percent and u": lambda key: "".join(f"%u{ord(c):04X}" for c in key),
    "hexadecimal digits": lambda key: key.encode().hex(),
    "hexadecimal digits of both cases": lambda key: (
        key.encode().hex()[:7].upper() + key.encode().hex()[7:]
    ),
    "a dump of bytes": lambda key: key.encode().hex(" "),
    "a list of hexadecimal numbers": lambda key: ", ".join(map(hex, key.encode())).removeprefix(
        "0x"
    ),
    "a list of numbers": lambda key: ", ".join(map(str, key.encode())),
    "a list of numbers without spaces": lambda key: ",".join(map(str, key.encode())),
}


@pytest.mark.parametrize("name", thorough_after(8, SPELT))
@settings(max_examples=20)
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


@settings(max_examples=20)
@given(key=keys, before=st.text("~", max_size=90))
def test_base64_of_several_lines_and_in_json_hides_nothing(key: str, before: str) -> None:
    lines = base64.encodebytes(before.encode() + key.encode()).decode()
    for text in (lines, lines.replace("\n", "\r\n"), json.dumps(lines).replace("/", "\\/")):
        assert without_key(text.encode(), key).count(HIDDEN) >= 1


def test_words_that_are_made_to_be_slow_are_read_once() -> None:
    key = "sk-Ab/9+x_Q=z7.LmN"
    for unit in ("\\", "&amp;", "%25", "&#0", "73 ", "115,", "c2stQWIv", key[:-1]):
        seconds = []
        for size in (100_000, 400_000):
            words = (unit * (size // len(unit))).encode()
            began = time.process_time()
            without_key(words, key)
            seconds.append(time.process_time() - began)
        assert seconds[1] < 12 * seconds[0] + 0.1


@given(words=st.binary(max_size=300))
def test_words_without_a_key_stay_as_they_are(words: bytes) -> None:
    assert without_key(words, "sk-Zq9/secretKEY+7f3a==") == words


@pytest.mark.parametrize("key", ["none", "test", "EMPTY", "x", "ollama"])
def test_a_word_that_stands_for_a_key_is_left_in_replies(key: str) -> None:
    assert without_key(f"import py{key}".encode(), key) == f"import py{key}".encode()
