"""Several models in one run: which of them is asked, what is logged, and what it costs."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from evo_runs import QUIET

import evo
import replay
from evo.cli.entry import main
from evo.cli.estimates import outlook
from evo.gate.server import OfflineServer
from evo.keyed import KeyedStream
from evo.logs.cost import cost_of_calls
from evo.logs.records import Child, Evaluation, Header, Planned, ReplyLine
from evo.models.registry import ModelError, own_models
from evo.runs.budget import BudgetError
from evo.runs.configuration import make_header, make_header_again
from evo.runs.identity import differences
from evo.runs.mixture import MODEL_POLICIES, Returns, added, comparable, ucb1, with_models
from evo.runs.state import costs_of_log
from evo.studies.sweep.summary import cost_of_log
from replay.cli.entry import main as replay_main

PRICES: dict[str, Any] = {"input_price": 1.0, "output_price": 1.0, "base_url": "http://localhost:1"}
CHEAP, DEAR = (
    evo.Model(name="cheap", **PRICES),
    evo.Model(name="dear", **PRICES | {"output_price": 9.0}),
)
RNG = KeyedStream("test")


def test_ucb1_asks_each_once_and_then_what_gains_most_for_its_cost() -> None:
    assert ucb1([Returns(1, 1.0, 0.5), Returns()], RNG) == 1
    assert ucb1([Returns(50, 50.0, 5.0), Returns(50, 50.0, 1.0)], RNG) == 0
    assert ucb1([Returns(50, 500.0, 5.0), Returns(50, 50.0, 1.0)], RNG) == 1
    assert ucb1([Returns(500, 500.0, 5.0), Returns(3, 3.0, 0.0)], RNG) == 1  # hardly tried
    assert ucb1([Returns(5, 5.0, 0.0), Returns(5, 5.0, 0.0)], RNG) == 0
    scaled = [Returns(50, 5e-9, 5e7), Returns(50, 5e-9, 4e7)]
    assert ucb1(scaled, RNG) == ucb1([Returns(50, 50.0, 5.0), Returns(50, 50.0, 4.0)], RNG)


def asked(prices: dict[str, float | None], gains: dict[str, float], calls: int = 40) -> list[str]:
    """Returns which model each child is asked of, one after another, each of which gains alike."""
    models = [
        evo.Model(name=name, **PRICES | {"input_price": price, "output_price": price})
        for name, price in prices.items()
    ]
    header, returns, found = make_header("mmd", models=models, children=1), {}, []
    for number in range(1, calls + 1):
        [planned] = with_models([Planned(parents=((0, 0),))], header, number, returns)
        found.append(planned.model)
        returns = added(returns, [child(planned.model, 0.5 + gains[planned.model])], header, 0.5)
    return found


def test_a_free_model_is_the_limit_of_a_cheap_one_and_unknown_prices_compare_calls() -> None:
    gains = {"a": 0.2, "b": 0.1}
    free = asked({"a": 0.0, "b": 5.0}, gains)
    assert free == asked({"a": 1e-9, "b": 5.0}, gains)
    assert free.count("a") > 25
    assert asked({"a": None, "b": 5.0}, gains) == asked({"a": 1.0, "b": 1.0}, gains)
    assert asked({"a": 0.0, "b": 0.0}, gains) == asked({"a": 1.0, "b": 1.0}, gains)


def test_drafts_that_were_not_chosen_cost_what_they_cost() -> None:
    header = make_header("mmd", models=[CHEAP, DEAR])
    made = [child("cheap", 0.7)]
    draft = ReplyLine(generation=1, index=0, draft=1, attempts=made[0].attempts, model="cheap")
    found = added({}, made, header, 0.5, [draft])["cheap"]
    assert (found.calls, found.asked) == (1, 2)
    assert found.cost == pytest.approx(0.002)
    older = msgspec.structs.replace(header, mixture_version=1)
    assert added({}, made, older, 0.5, [draft])["cheap"].cost == pytest.approx(0.001)


def child(model: str, fitness: float | None, tokens: int = 1000) -> Child:
    usage = {"prompt_tokens": 0, "completion_tokens": tokens}
    attempt = {"status": "ok", "latency": 1.0, "usage": usage}
    found = Evaluation(status="error" if fitness is None else "ok", fitness=fitness)
    return msgspec.convert(
        {"generation": 1, "index": 0, "seed": 0, "prompt_hash": "", "attempts": [attempt],
         "model": model, "evaluation": found},
        Child,
    )  # fmt: skip


def test_gains_are_counted_per_dollar_where_prices_are_known_else_per_call() -> None:
    header = make_header("mmd", models=[CHEAP, DEAR])
    made = [child("cheap", 0.7), child("cheap", 0.2), child("dear", 0.9), child("dear", None)]
    found = added({}, made, header, 0.5)
    assert found["cheap"] == Returns(2, pytest.approx(0.002), pytest.approx(0.2), 2)  # type: ignore[arg-type]
    assert found["dear"] == Returns(2, pytest.approx(0.018), pytest.approx(0.4), 2)  # type: ignore[arg-type]
    free = msgspec.structs.replace(DEAR, output_price=None)
    by_call = added({}, made, make_header("mmd", models=[CHEAP, free]), 0.5)
    assert [each.cost for each in comparable(list(by_call.values()))] == [2.0, 2.0]
    assert added(found, made, header, None)["dear"].gain == pytest.approx(0.4)
    assert cost_of_calls(made, header).dollars == pytest.approx(0.020)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> evo.Log:
    path = tmp_path_factory.mktemp("mixed") / "a.jsonl"
    models = ["offline", "offline-2"]
    return evo.run("mmd", models=models, generations=4, children=3, seed=5, log=path, **QUIET)


def test_each_child_names_its_model_as_it_was_planned(log: evo.Log) -> None:
    for child_made in log.children:
        planned = log.plans[child_made.generation].requests[child_made.index]
        assert child_made.model == planned.model
        assert child_made.attempts[0].usage is not None
    assert [each.model for each in log.children[:3]] == ["offline", "offline-2", "offline"]
    assert log.header.model_name == "offline+offline-2"


def test_tables_name_the_model_and_costs_are_those_of_the_ledger(log: evo.Log) -> None:
    frame, children = replay.load(log, progress=False), replay.children(log, progress=False)
    assert set(frame["model"]) == {"offline+offline-2"}
    assert children["asked_model"].tolist() == [each.model for each in log.children]
    for unit in ("tokens", "flops", "dollars"):
        whole = [cost[unit] for cost in costs_of_log(log)]
        assert frame[unit].tolist() == pytest.approx(whole, nan_ok=True)


def test_a_log_goes_on_with_all_of_its_models_and_only_where_the_user_points() -> None:
    header = make_header("mmd", models=["offline", "offline-2"])
    assert own_models(header, "a.jsonl").models == header.models
    away = msgspec.structs.replace(header.models[1].model, base_url="http://elsewhere")
    forged = msgspec.structs.replace(header.models[1], model=away)
    with pytest.raises(ModelError, match="a log does not decide where calls go"):
        own_models(msgspec.structs.replace(header, models=(header.models[0], forged)), "a.jsonl")
    with pytest.raises(ModelError, match="goes on with all of these"):
        own_models(header, "a.jsonl", "offline")


def test_a_fork_may_go_on_with_one_of_the_models_or_with_others(
    log: evo.Log, tmp_path: Path
) -> None:
    [alone] = evo.fork(log, at=2, model="offline-2", generations=3, log_dir=tmp_path, **QUIET)
    assert alone.header.model_name == "offline-2"
    assert [each.model for each in alone.children[6:]] == [""] * 3
    rows = replay.children(alone, progress=False)
    assert rows["asked_model"].tolist() == [
        *(each.model for each in log.children[:6]), *["offline-2"] * 3
    ]  # fmt: skip
    how: dict[str, Any] = {"generations": 3, "log_dir": tmp_path, **QUIET}
    alone_again = evo.fork(alone, at=3, models=["offline-2", "offline"], **how | {"generations": 4})
    assert {each.model for each in alone_again[0].children[9:]} == {"offline", "offline-2"}
    assert evo.rerun(alone_again[0]).same


def test_models_are_part_of_what_identifies_a_run() -> None:
    header = make_header("mmd", models=["offline", "offline-2"], temperature=0.3)
    assert {each.sampling.temperature for each in header.models} == {0.3}
    assert differences(header, make_header("mmd", temperature=0.3)) == ["models", "model_policy"]
    assert differences(header, make_header_again(header)) == []
    assert make_header_again(header, model="offline-2").models == ()
    by_turns = make_header("mmd", models=["offline", "offline-2"], model_policy="round_robin")
    assert "model_policy" in differences(header, by_turns)
    assert set(MODEL_POLICIES) == {"ucb1", "round_robin", "random"}


def test_models_are_drawn_in_proportion_to_their_weights(tmp_path: Path) -> None:
    two: dict[str, Any] = {"models": ["offline", "offline-2"], "children": 8}
    header = make_header("mmd", model_weights=[3, 1], **two)
    alike = make_header("mmd", model_policy="random", **two)
    assert header.model_policy == "random"
    assert differences(header, alike) == ["model_weights"]
    assert make_header_again(header).model_weights == (3.0, 1.0)

    def drawn(made: Header) -> list[str]:
        planned = [Planned(parents=((0, 0),))] * 8
        each = (with_models(planned, made, number, {}) for number in range(1, 126))
        return [request.model for requests in each for request in requests]

    assert 720 < drawn(header).count("offline") < 780  # of 1,000, 750 are expected: 2.2 SD
    assert 465 < drawn(alike).count("offline") < 535
    assert drawn(make_header("mmd", model_weights=[0.75, 0.25], **two)) == drawn(header)

    log = evo.run("mmd", model_weights=[1e9, 1], generations=2, log=tmp_path / "a.jsonl",
                  **two, **QUIET)  # fmt: skip
    assert {child.model for child in log.children} == {"offline"}
    assert evo.rerun(log).same
    how: dict[str, Any] = {"at": 1, "log_dir": tmp_path, "generations": 2, **QUIET}
    [turned] = evo.fork(log, model_weights=[1, 1e9], **how)
    assert [child.model for child in turned.children[8:]] == ["offline-2"] * 8
    [again] = evo.fork(log, model_policy="round_robin", **how)
    assert again.header.model_weights == ()


def test_weights_of_models_are_told_in_tables(tmp_path: Path) -> None:
    two: dict[str, Any] = {"models": ["offline", "offline-2"], "generations": 1, "children": 2}
    for name, weights in (("a", [3, 1]), ("b", None)):
        evo.run("mmd", model_weights=weights, log=tmp_path / f"{name}.jsonl", **two, **QUIET)
    frame = replay.load(tmp_path, progress=False)
    assert set(frame["settings"]) == {"model_weights 3:1", ""}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["offline"]}, "at least two, all different"),
        ({"models": ["offline", "offline"]}, "at least two, all different"),
        ({"models": ["offline", CHEAP]}, "LLMs or stand-ins, not both"),
        ({"models": ["offline", "offlin"]}, "unknown model 'offlin'"),
        ({"models": ["offline", "offline-2"], "model": CHEAP}, "expected none beside models"),
        ({"models": ["offline", "offline-2"], "model_policy": "best"}, "one of ucb1, round_robin"),
        ({"model_policy": "best"}, "one of ucb1, round_robin"),
        ({"model_weights": [1, 2]}, "one number > 0 for each of models (0)"),
        ({"models": ["offline", "offline-2"], "model_weights": [1]}, "of models (2), got [1]"),
        ({"models": ["offline", "offline-2"], "model_weights": [1, 0]}, "number > 0"),
        (
            {"models": ["offline", "offline-2"], "model_weights": [1, 2], "model_policy": "ucb1"},
            "model_policy is 'ucb1'; leave one of the two out",
        ),
        ({"model_policy": "random"}, "'random' chooses among several models; give them as well"),
    ],
)
def test_mistakes_are_named(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make_header("mmd", **options)


def test_a_budget_in_dollars_needs_the_price_of_every_model(tmp_path: Path) -> None:
    unpriced = evo.Model(name="unpriced", base_url="http://localhost:1")
    with pytest.raises(BudgetError, match="dollars"):
        evo.run("mmd", models=[CHEAP, unpriced], budget={"dollars": 1.0},
                log=tmp_path / "a.jsonl", **QUIET)  # fmt: skip


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[evo.Model]]]:
    """A folder with one run of two served models whose prices differ, and these models."""
    folder = tmp_path_factory.mktemp("priced")
    with OfflineServer() as server:
        how: dict[str, Any] = {"id": "offline", "base_url": server.url, "input_price": 1.0}
        models = [
            evo.Model(name=name, output_price=price, **how)
            for name, price in (("cheap", 1.0), ("dear", 90.0))
        ]
        text = "".join(
            f'["{each.name}"]\nid = "offline"\nbase_url = "{server.url}"\ninput_price = 1.0\n'
            f"output_price = {each.output_price}\n"
            for each in models
        )
        (folder / "models.toml").write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EVO_MODELS", str(folder / "models.toml"))
            (folder / "logs").mkdir()
            evo.run("mmd", models=["cheap", "dear"], generations=2, children=3, max_tokens=1000,
                    log=folder / "logs" / "a.jsonl", **QUIET)  # fmt: skip
            yield folder, models


def paid_by_hand(log: evo.Log, models: list[evo.Model]) -> dict[str, float]:
    """What each model was paid, from the usage of its calls."""
    paid = dict.fromkeys((each.name for each in models), 0.0)
    price = {each.name: each.output_price or 0.0 for each in models}
    for made in log.children:
        usage = made.attempts[-1].usage or {}
        prompt, reply = usage["prompt_tokens"], usage["completion_tokens"]
        assert isinstance(prompt, int)
        assert isinstance(reply, int)
        paid[made.model] += (prompt + price[made.model] * reply) / 1e6
    return paid


def test_what_two_models_of_different_prices_cost_is_the_same_wherever_it_is_stated(
    priced: tuple[Path, list[evo.Model]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, models = priced
    log = evo.read_log(folder / "logs" / "a.jsonl")
    paid = paid_by_hand(log, models)
    total = sum(paid.values())
    assert paid["dear"] > paid["cheap"] > 0
    frame, children = replay.load(log, progress=False), replay.children(log, progress=False)
    assert frame["dollars"].sum() == pytest.approx(total)
    assert children.groupby("asked_model")["dollars"].sum().to_dict() == pytest.approx(paid)
    assert log.ends[-1].stats["dollars"] == pytest.approx(total, abs=1e-6)
    assert sum(cost["dollars"] for cost in costs_of_log(log)) == pytest.approx(total)
    assert cost_of_log(log).dollars == pytest.approx(total)
    for command in ("show", "stats"):
        assert main([command, str(log.path)]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        rows = {line[0]: line for line in lines if line and line[0] in paid}
        assert {name: f"{amount:.4f}" in rows[name] for name, amount in paid.items()} == {
            "cheap": True,
            "dear": True,
        }
    picture = str(tmp_path / "a.png")
    assert replay_main(["report", str(folder / "logs"), "--csv", "-o", picture]) == 0
    cells = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("quantity")["value"]
    for name, amount in paid.items():
        assert float(cells[f"{name}: dollars"]) == pytest.approx(amount, rel=1e-3)


def test_an_estimate_takes_the_dearest_of_the_models(
    priced: tuple[Path, list[evo.Model]],
) -> None:
    header = make_header("mmd", models=["cheap", "dear"], children=3, max_tokens=1000)
    assert "6,000 completion tokens (0.54 dollars)" in outlook([(header, 2)])
    other_way = make_header("mmd", models=["dear", "cheap"], children=3, max_tokens=1000)
    assert outlook([(other_way, 2)]) == outlook([(header, 2)])


def test_sweeps_and_allocations_of_two_models_cost_what_their_calls_cost(
    priced: tuple[Path, list[evo.Model]], tmp_path: Path
) -> None:
    _, models = priced
    names = ["cheap", "dear"]
    common: dict[str, Any] = {"task": "mmd", "children": 2, **QUIET}
    space = {"models": [names, models[::-1]]}
    made = evo.sweep(space, generations=1, seeds=[1], budget={"calls": 1},
                     log_dir=tmp_path / "sweep", **common)  # fmt: skip
    logs = [evo.read_log(path) for path in Path(made.folder).glob("runs/*.jsonl")]
    [log] = [each for each in logs if each.generations]
    rows = replay.load_sweep(made.folder)
    assert rows["status"].tolist() == ["completed", "pending"]
    assert rows["model"].tolist() == ["cheap+dear", "dear+cheap"]
    row = rows.iloc[0]
    assert row["dollars"] == pytest.approx(sum(paid_by_hand(log, models).values()))
    allocation = evo.allocate_live(policy="ucb1", arms=2, rounds=2, models=names,
                                   log_dir=tmp_path / "arms", **common)  # fmt: skip
    paid = sum(sum(paid_by_hand(arm, models).values()) for arm in allocation.arms)
    assert allocation.spent["dollars"][-1] == pytest.approx(paid)


def test_a_child_that_is_awaited_costs_what_others_did_and_has_gained_nothing_yet() -> None:
    for known in (Returns(4, 2.0, 1.0), Returns(1, 0.5, 0.0), Returns()):
        awaited = known.awaited
        assert (awaited.calls, awaited.gain) == (known.calls + 1, known.gain)
        assert awaited.cost == pytest.approx(known.cost * (known.calls + 1) / max(known.calls, 1))
        assert awaited.rate <= known.rate
