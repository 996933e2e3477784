"""The table of languages: every line of it can be used."""

import re

import pytest
from pygments.lexers import get_lexer_by_name

from evo.logs.languages import LANGUAGES, fence_of, named


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_says_all_that_is_needed(name: str) -> None:
    language = LANGUAGES[name]
    assert get_lexer_by_name(language.lexer)
    assert language.fences
    assert re.fullmatch(r"\.\w+", language.suffix)
    assert language.tools
    assert language.install
    assert bool(language.build) != bool(language.run)
    words = {"source": "program", "program": "out"}
    used = " ".join(each.format(**words) for each in (*language.build, *language.run))
    assert "program" in used


def test_a_fence_and_a_suffix_name_one_language() -> None:
    fences = [fence for each in LANGUAGES.values() for fence in each.fences]
    suffixes = [each.suffix.lower() for each in LANGUAGES.values()]
    assert len({*fences}) == len(fences)
    assert len({*suffixes}) == len(suffixes)
    for name, language in LANGUAGES.items():
        assert {named(fence) for fence in language.fences} == {name}
        assert named(fence_of(f"lib/file{language.suffix}")) == name
    assert (named("python"), named("text"), named("")) == ("", "", "")
    assert (fence_of("a.py"), fence_of("a.unknown")) == ("python", "text")
