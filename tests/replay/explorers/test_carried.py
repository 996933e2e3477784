"""What a page carries of the controls of an explorer."""

import json
from math import prod

from hypothesis import given
from hypothesis import strategies as st
from ipywidgets import (
    BoundedFloatText,
    Checkbox,
    Dropdown,
    FloatSlider,
    IntRangeSlider,
    IntSlider,
    SelectionSlider,
    SelectMultiple,
    Text,
)

from replay.explorers import carried
from replay.explorers.carried import book_of
from replay.explorers.explorer_spec import ExplorerSpec, Sentence
from replay.plots import Chart
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel


def spec_of(*names, length=1, **how):
    """An explorer that states its settings, with curves so long."""

    def chart(view):
        line = Line(x=[*range(length)], y=[0.5] * length)
        panel = Panel(title=view.words, x=Axis(), y=Axis(), marks=[line])
        return Chart(panels=[panel])

    return ExplorerSpec(
        name="mine", theme="light", carried=names, chart=chart, **how,
        view=lambda now, coarse: Sentence(json.dumps(now)),
    )  # fmt: skip


def book(controls, spec=None):
    now = {name: control.value for name, control in controls.items()}
    return book_of(spec or spec_of(*controls), controls, now)


def test_each_kind_of_control_has_its_values():
    controls = {
        "list": Dropdown(options=[("one", 1), ("two", 2)], value=2),
        "steps": SelectionSlider(options=["a", "b", "c"], value="b"),
        "whole": IntSlider(min=2, max=8, step=3, value=5),
        "share": FloatSlider(min=0.1, max=0.3, step=0.1, value=0.3),
        "box": Checkbox(value=True),
    }
    made = book(controls)
    found = {each["label"]: (each["kind"], each["texts"], each["at"]) for each in made["controls"]}
    assert found == {
        "list": ("list", ["one", "two"], 1),
        "steps": ("slider", ["a", "b", "c"], 1),
        "whole": ("slider", ["2", "5", "8"], 1),
        "share": ("slider", ["0.1", "0.2", "0.3"], 2),
        "box": ("box", ["no", "yes"], 1),
    }
    assert made["note"] == ""


def test_of_what_has_no_list_of_values_a_page_states_the_value_that_it_has():
    controls = {
        "text": Text("a"),
        "pair": IntRangeSlider(value=(1, 2), min=0, max=4),
        "free": BoundedFloatText(value=0.123, min=0, max=1, step=0.5),
        "only": Dropdown(options=["a"]),
        "empty": Text(""),
    }
    made = book(controls)
    assert [(each["label"], each["texts"]) for each in made["controls"]] == [
        ("text", ["a"]),
        ("pair", ["(1, 2)"]),
        ("free", ["0", "0.123", "0.5", "1"]),
    ]
    assert len(made["pages"]) == 4
    made = book(controls, spec_of(*controls, scrubs={"free": lambda now: [0.0, 0.123, 1.0]}))
    assert [len(each["texts"]) for each in made["controls"]] == [1, 1, 3]
    assert len(made["pages"]) == 3


@given(
    sizes=st.lists(st.integers(2, 90), min_size=1, max_size=3),
    choice=st.data(),
    sliders=st.booleans(),
)
def test_there_is_a_chart_for_each_choice_and_never_too_many(sizes, choice, sliders):
    kind = SelectionSlider if sliders else Dropdown
    controls = {
        f"c{k}": kind(options=range(size), value=choice.draw(st.integers(0, size - 1)))
        for k, size in enumerate(sizes)
    }
    made, now = book(controls), {name: each.value for name, each in controls.items()}
    if made is None:
        assert not sliders
        assert min(sizes) > carried.MOST_VIEWS or len(sizes) == 1
        return
    counts = [len(each["texts"]) for each in made["controls"]]
    assert prod(counts) == len(made["which"]) <= carried.MOST_VIEWS
    at = 0
    for each, count in zip(made["controls"], counts, strict=True):
        at = at * count + each["at"]
    assert json.loads(made["pages"][made["which"][at]]["label"]) == now  # it begins as it was
    left_out = [name for name in controls if name not in {e["label"] for e in made["controls"]}]
    assert all(name in made["note"] for name in left_out)
    assert bool(made["note"]) == bool(left_out)


def test_a_page_keeps_within_its_bytes(monkeypatch):
    controls = {"one": Dropdown(options=range(2)), "many": Dropdown(options=range(9))}
    assert len(book(controls, spec_of(*controls, length=400))["pages"]) == 18
    monkeypatch.setattr(carried, "MOST_BYTES", 20_000)
    made = book(controls, spec_of(*controls, length=400))
    assert len(made["pages"]) == 2
    assert made["note"] == "This page has no room for other values of many."
    monkeypatch.setattr(carried, "MOST_BYTES", 10)
    assert book(controls, spec_of(*controls, length=400)) is None


def test_what_is_hidden_is_not_carried():
    controls = {"a": Checkbox(), "b": Checkbox()}
    made = book(controls, spec_of("a", "b", hidden=lambda now: {"a"}))
    assert [each["label"] for each in made["controls"]] == ["b"]


def test_what_matters_to_some_choices_alone_is_hidden_for_the_others():
    controls = {"kind": Dropdown(options=["a", "b"]), "of": Dropdown(options=range(3))}
    rule = {"hidden": lambda now: {"of"} if now["kind"] == "a" else set()}
    made = book(controls, spec_of(*controls, **rule))
    assert [each["name"] for each in made["controls"]] == ["kind", "of"]
    assert made["hidden"] == [[1], [1], [1], [], [], []]
    assert made["which"] == [0, 0, 0, 1, 2, 3]  # what does not matter makes no chart


def test_a_list_of_several_has_all_and_each_alone():
    control = SelectMultiple(options=[("one  (2)", "x"), ("two  (1)", "y")], value=())
    made = book({"where": control})
    assert [each["texts"] for each in made["controls"]] == [["all", "x", "y"]]
    assert [json.loads(each["label"])["where"] for each in made["pages"]] == [[], ["x"], ["y"]]
    control.value = ("x", "y")
    [several] = book({"where": control})["controls"]
    assert several["texts"][several["at"]] == "x and y"


def test_no_chart_is_made_that_finds_no_room(monkeypatch):
    asked = []

    def view(now, coarse):
        asked.append(now["many"])
        return Sentence("long " * 100 + str(now))

    monkeypatch.setattr(carried, "MOST_BYTES", 3_000)
    spec = ExplorerSpec(name="mine", theme="light", carried=["many"], view=view)
    assert book({"many": Dropdown(options=range(99))}, spec) is None
    assert len(asked) < 9


def test_a_setting_that_cannot_be_shown_is_its_reason():
    def view(now, coarse):
        if now["a"]:
            raise ValueError("not this one")
        return Sentence("shown")

    spec = ExplorerSpec(name="mine", theme="light", carried=["a"], view=view)
    pages = book({"a": Checkbox()}, spec)["pages"]
    assert [(page["message"], page["label"]) for page in pages] == [
        ("shown", "shown"),
        ("not this one", "not this one"),
    ]
