"""A line says what is wrong with it before it is decoded."""

from samples import sample_header

from evo.logs.journal import encode_line
from evo.logs.lines import check_line, rewritten


def test_a_line_that_an_editor_rewrote_is_told_from_a_damaged_one() -> None:
    line = encode_line(sample_header())[:-1]
    assert check_line(line) is None
    assert rewritten(line) is None
    assert "CR LF" in (rewritten(line + b"\r") or "")
    assert "byte-order mark" in (rewritten(b"\xef\xbb\xbf" + line) or "")
    assert rewritten(line[:-1] + b"\r") is None
    assert check_line(line[:-1]) == (
        "the checksum does not match: the line was changed after it was written"
    )
