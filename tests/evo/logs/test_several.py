"""Programs of several files as one text, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.several import (
    fits,
    header_line,
    is_file_name,
    may_be_new,
    pack,
    unpack,
    unpacked,
)

NAMES = st.sampled_from(["main.py", "a.txt", "lib/b.py", "lib/deep/c d.py", "==== file: x ===="])
LINES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", header_line("main.py"), "\\" + header_line("a"), "\\\\==== file: q ===="]),
)
TEXTS = st.lists(LINES, max_size=6).map("\n".join)


@given(st.dictionaries(NAMES, TEXTS, min_size=1))
def test_files_come_back_from_their_text_whatever_is_in_them(files):
    text = pack(files)
    found = unpack(text)
    assert list(found) == [next(iter(files)), *sorted(list(files)[1:])]
    for name, given_text in files.items():
        plain = given_text.replace("\r\n", "\n").rstrip("\n")
        assert found[name] == (f"{plain}\n" if plain.strip() else "")
    assert pack(found) == text
    assert unpacked(text) == found


def test_a_text_without_a_header_line_is_one_file():
    assert unpacked("def f():\n    return 1\n") is None
    with pytest.raises(ValueError, match=r"expected a line such as '==== file: main.py ===='"):
        unpack("x = 1\n")


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.py", "a/../b", ".env", "a\\b", "", "a//b"])
def test_names_that_lead_out_of_the_folder_are_none(name):
    assert not is_file_name(name)
    with pytest.raises(ValueError, match="file within a folder"):
        pack({"main.py": "x\n", name: "y\n"})
    assert unpacked(f"{header_line('../a.py')}\nx\n") is None


def test_new_files_fit_a_pattern_and_take_no_name_of_the_task():
    patterns = ("main.py", "lib/*.py")
    assert fits("lib/a.py", patterns)
    assert not fits("lib/deep/a.py", patterns)
    assert not fits("a.py", patterns)
    assert may_be_new("lib/a.py", patterns)
    assert not may_be_new("lib/a.py", patterns, {"lib/a.py": "the evaluator's"})
