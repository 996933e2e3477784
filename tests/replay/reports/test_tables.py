"""The forms in which a report's tables are written."""

import json
import re

import pytest

import replay
from replay.reports.tables import FORMATS, Section, estimate, exact, stack, title

ODD = r"a_b & 100% of {x} #1 $5 ~^\ <[y]|"


def sections() -> list[Section]:
    found = replay.interval([0.5, 0.75, 0.75, 0.75, 1.0])
    rows = {
        "4": [exact("calls", 320, 5, "count"), estimate("final", found, "fitness")],
        ODD: [exact("calls", 64, 5, "count"), estimate("final", found, "fitness")],
    }
    about = {"task": "my_task", "model": "gpt-4.1", "is_llm": True, "heading": "N"}
    return [Section(title="Fitness & cost", cells=stack(rows), notes=(ODD,), **about)]


def unwritten(text: str) -> str:
    """What LaTeX would show."""
    words = {"backslash": "\\", "asciitilde": "~", "asciicircum": "^", "less": "<", "bar": "|"}
    for word, sign in {**words, "greater": ">"}.items():
        text = text.replace(rf"\text{word}{{}}", f"\0{ord(sign)}\0")
    text = re.sub(r"\\([&%$#_{}])", lambda found: f"\0{ord(found[1])}\0", text)
    text = text.replace("{[}", "[").replace("{]}", "]")
    return re.sub("\0(\\d+)\0", lambda found: chr(int(found[1])), text)


def test_latex_holds_the_cells_of_markdown_with_its_own_signs_written_out() -> None:
    tex = FORMATS["latex"](sections())
    body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")]
    rows = [re.split(r"(?<!\\) & ", line[:-3]) for line in body.splitlines()[1:]]
    shown = [[unwritten(cell) for cell in row] for row in rows]
    marked = [line for line in FORMATS["markdown"](sections()).splitlines() if line[:1] == "|"]
    cells = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in marked]
    assert shown == [[cell.replace(r"\|", "|") for cell in row] for row in cells[2:]]
    assert rows[1][0] != ODD
    assert tex.count("{") == tex.count("}")


@pytest.mark.parametrize(
    ("form", "command"),
    [
        ("plain", "`replay judge A_1 B --help`"),
        ("markdown", "`replay judge A_1 B --help`"),
        ("latex", r"\texttt{replay judge A\_1 B -{}-help}"),
        ("html", "<code>replay judge A_1 B --help</code>"),
    ],
)
def test_a_command_in_words_can_be_typed_as_it_is_shown(form: str, command: str) -> None:
    words = (("What next?", "Judge 5 % of them (`replay judge A_1 B --help`)."),)
    about = {"task": "t", "model": "m", "is_llm": True, "heading": ""}
    section = Section(title="Decision", cells=stack({}), words=words, **about)
    assert f"({command})." in FORMATS[form]([section])


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_holds_every_number(form: str) -> None:
    text = FORMATS[form](sections())
    assert "320" in text
    assert "0.75" in text
    assert not text.endswith("\n")  # which whoever prints it adds


def test_json_is_json() -> None:
    cells = json.loads(FORMATS["json"](sections()))["cells"]
    assert [cell["value"] for cell in cells] == [320, 0.75, 64, 0.75]


def test_a_unit_that_no_table_prints_is_refused_where_the_cells_are_stacked():
    with pytest.raises(ValueError, match=r"distance: expected a unit out of fitness.*'parsecs'"):
        stack({"all": [exact("distance", 3.0, 4, "parsecs")]})


def test_a_model_that_is_called_model_is_named_once():
    assert title("slow", "model", is_llm=True) == "slow, model"
    assert title("slow", "mine", is_llm=True) == "slow, model mine"
