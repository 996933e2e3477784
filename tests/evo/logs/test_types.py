import pytest

import evo
from evo.logs.types import NAME_BYTES, as_path


@pytest.mark.parametrize(
    ("given", "words"), [("a\0b.jsonl", "NUL"), ("x/" + "é" * 128, "at most 255 bytes .* got 256")]
)
def test_a_path_that_no_file_can_have_is_refused(given: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"log: .*{words}"):
        as_path("log", given)
    with pytest.raises(ValueError, match=words):
        evo.run("mmd", generations=1, children=1, log=given, model="offline", progress=False)
    assert as_path("log", "x" * NAME_BYTES).name == "x" * NAME_BYTES
