"""Options of functions: what signatures, docstrings and help show of them."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import socket
import typing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evo
from evo.logs.journal import encode_line
from evo.logs.log import line_decoder
from evo.models import client
from evo.models.client import EndpointDown, ModelClient
from evo.plugins import MistakenType
from evo.runs.budget import check_budget
from evo.runs.configuration import make_header
from evo.runs.options import ConfigurationOptions, FieldOptions, GoalOptions, RunOptions
from evo.runs.settings import Goal, Settings
from evo.runs.signatures import entries, lists_options
from evo.runs.verbs import prepare_many, prepare_run
from evo.searches import Population

VERBS = ["run", "run_many", "run_grid", "start", "resume", "resume_many", "fork", "evaluate"]


def documented(**options):
    """Does something.

    Args:
        **options: Listed below.
    """


def test_a_docstring_lists_every_option_with_or_without_its_indentation():
    """Python 3.13 strips the indentation of docstrings, earlier versions keep it."""
    texts = []
    for text in (documented.__doc__, inspect.cleandoc(documented.__doc__)):

        def function(**options): ...

        function.__doc__ = text
        texts.append(inspect.getdoc(lists_options(RunOptions)(function)))
    assert texts[0] == texts[1]
    assert "    generations: Number of generations T." in texts[1].splitlines()


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_shows_its_options_and_what_it_returns(name):
    verb = getattr(evo, name)
    signature = inspect.signature(verb)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert "max_concurrent" in signature.parameters
    assert "Prepared" not in str(signature.return_annotation)
    for option in set(signature.parameters) - {"options"}:
        assert f"    {option}: " in inspect.getdoc(verb), option


def test_run_returns_a_log_and_has_the_defaults_of_its_options():
    signature = inspect.signature(evo.run)
    assert signature.return_annotation == "Log"
    assert typing.get_type_hints(evo.run)["return"] is evo.Log
    defaults = {name: each.default for name, each in signature.parameters.items()}
    assert defaults["generations"] == 8
    assert defaults["children"] == 16
    assert defaults["model"] == "offline"


def test_the_goal_and_the_settings_have_the_fields_and_defaults_of_their_options():
    for kind, options in ((Goal, GoalOptions), (Settings, FieldOptions)):
        fields = {field.name: field.default for field in dataclasses.fields(kind)}
        assert fields == {entry.name: entry.option.default for entry in entries(options)}


def test_a_header_states_the_defaults_of_its_options():
    plain = make_header("mmd")
    spelled = {entry.name: entry.option.default for entry in entries(ConfigurationOptions)}
    assert make_header("mmd", **spelled) == plain


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("seed", 2**power) for power in (63, 64, 70)),
        *(("generations", 2**power) for power in (63, 64, 70)),
        *((name, 2**64) for name in ("patience", "inspirations", "drafts", "max_tokens")),
        *((name, 10**400) for name in ("seed", "generations", "target", "min_improvement")),
        *((name, 10**400) for name in ("temperature", "top_p", "timeout", "evaluation_timeout")),
        *(("budget", {unit: 10**400}) for unit in ("calls", "seconds")),
        ("search", {"name": "islands", "islands": 2**64}),
        ("search", Population(mutation_rate=Fraction(1, 2))),
    ],
)
def test_a_number_that_no_log_can_hold_is_refused_before_a_log_is_begun(tmp_path, option, value):
    log = tmp_path / "a.jsonl"
    with pytest.raises(ValueError, match=r"expected|a log"):
        evo.run("mmd", **{"generations": 1, "children": 1, "log": log, option: value})
    assert not log.exists()


def test_the_largest_seed_that_a_log_holds_is_read_again(tmp_path):
    log = evo.run("mmd", generations=1, children=1, seed=2**63 - 1, log=tmp_path / "a.jsonl")
    assert evo.resume(log.path).header.seed == 2**63 - 1


def test_numbers_of_numpy_are_numbers():
    """Values that one loops over often come from an array."""
    plain = make_header("mmd", children=2, seed=3, search=Population(mutation_rate=0.5))
    for share in (np.float64(0.5), np.float32(0.5)):
        header = make_header(
            "mmd",
            children=np.int64(2),
            seed=np.int64(3),
            search=Population(mutation_rate=share),
        )
        assert line_decoder.decode(encode_line(header)) == plain
    budget = {"calls": np.int64(4), "tokens": np.float32(9), "seconds": Fraction(1, 2)}
    assert check_budget(budget) == {"calls": 4.0, "tokens": 9.0, "seconds": 0.5}


def test_an_unknown_option_is_named_with_those_that_exist():
    for verb, arguments in ((evo.run, ["mmd"]), (evo.fork, ["log.jsonl"])):
        more = {"at": 1} if verb is evo.fork else {}
        with pytest.raises(TypeError, match=r"unknown argument 'colour'.*known.*temperature"):
            verb(*arguments, colour=1, **more)


ODD: list[Any] = [
    "0.5", "x", b"x", 3, -1, 1.5, 10**30, True, None, math.nan, math.inf, object(), abs,
    [], [None], ["a", 3], {}, {"a": 1}, (1, 2),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:critic. it chooses among drafts")
@pytest.mark.parametrize("name", [*RunOptions.__annotations__, "task", "log", "budget", "seeds"])
def test_whatever_is_given_is_taken_or_answered_in_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare = prepare_many if name == "seeds" else prepare_run
    for value in ODD:
        with contextlib.suppress(ValueError, MistakenType):
            prepare(**{"task": "mmd", name: value})
    for wrong in {"target": ["0.5"], "on_event": [3], "limits": [3]}.get(name, []):
        with pytest.raises(MistakenType, match=f"{name}: expected"):
            prepare(**{"task": "mmd", name: wrong})


@pytest.mark.parametrize(
    ("retries", "said"), [(1, "Trying again once"), (4, "Trying again 4 times")]
)
def test_a_dead_endpoint_is_said_after_its_first_refusal(
    retries: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = evo.Model(name="dead", base_url=url)
    order: list[str] = []
    monkeypatch.setattr(client, "warn", order.append)
    monkeypatch.setattr(ModelClient, "_pause", lambda *_: order.append("pause"))
    with pytest.raises(EndpointDown):
        evo.run("mmd", model=model, generations=1, children=2, retries=retries, max_concurrent=1,
                log=tmp_path / "a.jsonl", progress=False, workers=1)  # fmt: skip
    assert order[0].startswith(f"the endpoint {url} cannot be reached")
    assert order[0].endswith(said)
    assert order[1:] == ["pause"] * retries
