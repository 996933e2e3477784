"""The forms in which a report's tables are written."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay
from replay.reports.forms import FORMATS
from replay.reports.tables import Cell, Section, estimate, exact, stack

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


GROUPS = st.lists(
    st.tuples(st.sampled_from("tu"), st.sampled_from("mn"), st.sampled_from(["", "greedy"])),
    min_size=1, max_size=8, unique=True,
)  # fmt: skip


@given(groups=GROUPS)
def test_tables_of_one_title_are_one_with_columns_that_tell_their_groups_apart(
    groups: list[tuple[str, str, str]],
) -> None:
    made = [
        Section(
            title="Calls", heading="N", task=task, model=model, setting=setting, is_llm=True,
            cells=stack({"4": [exact("calls", 1000 + number, 5, "calls")]}),
            notes=("of all", f"of {number}"),
        )
        for number, (task, model, setting) in enumerate(groups)
    ]  # fmt: skip
    lines = FORMATS["markdown"](made).splitlines()
    head, _, *rows = [line for line in lines if line.startswith("|")]
    names = [name.strip() for name in head.strip("|").split("|")]
    values = dict(zip(("task", "model", "configuration"), zip(*groups, strict=True), strict=True))
    assert names == [*(k for k, of in values.items() if len(set(of)) > 1), "N", "calls"]
    found = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    told = [
        [*(values[name][number] for name in names[:-2]), "4", str(1000 + number)]
        for number in range(len(groups))
    ]
    assert sorted(found) == sorted(told)
    assert lines.count("- of all") == 1
    assert sum(line.endswith(": of 0") or line == "- of 0" for line in lines) == 1
    assert json.loads(FORMATS["json"](made))["cells"][0]["value"] == 1000  # each by itself


def test_tables_of_unlike_quantities_leave_open_what_a_group_lacks() -> None:
    def about(model: str, *cells: Cell) -> Section:
        return Section(
            title="Cost", heading="N", task="t", model=model, is_llm=model == "real",
            cells=stack({"4": cells}), notes=(f"sums over {len(cells)}",),
        )  # fmt: skip

    calls, dollars = exact("calls", 7, 5, "calls"), exact("dollars", 1.5, 5, "dollars")
    text = FORMATS["plain"]([about("offline", calls), about("real", calls, dollars)])
    _, _, _, _, heads, first, second, *notes = text.splitlines()
    assert heads.split() == ["model", "N", "calls", "dollars"]
    assert first.split() == ["offline", "(not", "an", "LLM)", "4", "7"]
    assert second.split() == ["real", "4", "7", "1.5"]
    assert "t, 2 models" in text
    assert any("real: sums over 2" in note for note in notes)
