"""What seems to be a key is recognised, and what only looks like one is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.keys import holds_key

LETTERS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
HEX = "0123456789abcdef"


@pytest.mark.parametrize(
    ("prefix", "least"), [("sk-", 16), ("ghp_", 20), ("hf_", 20), ("xoxb-", 10), ("AIza", 30)]
)
def test_a_key_is_known_by_its_prefix_and_its_length(prefix: str, least: int) -> None:
    rest = (HEX * 3)[:least]
    for code in (True, False):
        assert holds_key(f"key: {prefix}{rest}", code=code)
        assert not holds_key(f"the word {prefix}{rest[1:]}", code=code)
        assert not holds_key(f"a{prefix}{rest[:4]}", code=code)


def test_an_amazon_key_has_an_exact_form() -> None:
    assert holds_key("AKIA" + "A1" * 8)
    assert not holds_key("AKIA" + "A1" * 8 + "B")
    assert holds_key("-----BEGIN RSA PRIVATE KEY-----")
    assert holds_key("https://me:secret@host/path")
    assert not holds_key("https://host:8080/path")


VALUE = '"a1b2c3d4e5f6a7b8"'
EVERY = [
    *(f"{kind}-{HEX}" for kind in ("sk", "pk", "rk")),
    *(f"gh{kind}_{HEX}abcd" for kind in "pousr"),
    f"AKIA{HEX}",
    f"hf_{HEX}abcd",
    f"xoxb-{HEX}",
    f"AIza{HEX * 2}",
    "-----BEGIN EC PRIVATE KEY-----",
    f"github_pat_{HEX}abcd",
    f"eyJ{HEX}.eyJ{HEX}",
    "redis://me:word@host",
    *(f"{kind}{sign}key={VALUE}" for kind in ("api", "private", "access", "auth") for sign in "_-"),
    *(f"{kind}{sign}token: {VALUE}" for kind in ("auth", "access", "refresh") for sign in "_-"),
    *(f"{name} = {VALUE}" for name in ("apikey", "privatekey", "accesskey", "authkey")),
    *(f"{name} = {VALUE}" for name in ("token", "bearertoken", "secret", "credential")),
    *(f"{name} = {VALUE}" for name in ("passwd", "password")),
]


@pytest.mark.parametrize("key", EVERY)
def test_every_kind_of_key_is_found_in_any_letters_amid_other_text(key: str) -> None:
    for written in (key, key.lower(), key.upper(), key.swapcase()):
        assert holds_key(f"from math import pi\n\n{written}\narea = pi / 4  # of a circle\n")


@pytest.mark.parametrize("name", ["api_key", "authkey", "passwd", "secret", "token", "credential"])
def test_a_value_without_quotes_counts_outside_code(name: str) -> None:
    for written in (name, name.upper()):
        assert holds_key(f"a text\n{written}: a1b2c3d4e5f6a7b8\n", code=False)
        assert holds_key(f"x: 1\n{written}: hunter2\n", settings=True)
        assert not holds_key(f"a text\n{written}: a1b2c3d4e5f6a7b8\n")


@pytest.mark.parametrize(
    "name",
    ["api_key", "API-KEY", "apikey", "password", "passwd", "secret", "auth_token", "credential"],
)
def test_a_value_in_quotes_behind_the_name_of_a_key_is_one_from_eight_characters_on(
    name: str,
) -> None:
    assert holds_key(f'{name} = "a1b2c3d4"')
    assert holds_key(f"'{name}': 'a1b2c3d4'")
    assert not holds_key(f'{name} = "a1b2c3d"')
    assert not holds_key(f"{name} = value")


@pytest.mark.parametrize(
    "value",
    [
        "$TOKEN_OF_MINE",
        "<your token>",
        "{token_of_mine}",
        "********",
        "your-key-here",
        "dummy-key-1",
        "None",
        "os.environ['A']",
        "changeme-please",
    ],
)
def test_a_placeholder_is_no_key(value: str) -> None:
    for settings in (True, False):
        assert not holds_key(f'api_key = "{value}"', settings=settings)


def test_without_quotes_a_long_value_with_a_digit_is_a_key_outside_code_alone() -> None:
    line = f"api_key: {HEX}"
    assert holds_key(line, code=False)
    assert not holds_key(line)
    assert not holds_key(line[:-1], code=False)
    assert not holds_key("api_key: abcdefghijklmnopqrst", code=False)


def test_in_settings_a_short_value_counts() -> None:
    assert holds_key("api_key=abcd", settings=True)
    assert not holds_key("api_key=abc", settings=True)
    assert not holds_key("api_key=abcd")


@given(st.lists(LETTERS.filter(lambda word: len(word) < 16)))
def test_short_words_are_no_keys(words: list[str]) -> None:
    assert not holds_key(" ".join(words), code=False)
