"""What a call costs is fixed when it is made, whatever the model costs later."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evo_runs import QUIET

import evo
import replay
from evo.gate.server import OfflineServer
from evo.logs.cost import cost_of_calls, cost_of_children
from evo.logs.records import Outcome
from evo.runs.state import costs_of_log


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with OfflineServer() as server:
        yield server.url


def priced(url: str, price: float, name: str = "a") -> evo.Model:
    prices: dict[str, Any] = {"input_price": price, "output_price": price}
    return evo.Model(name=name, id="offline", base_url=url, active_parameters=10, **prices)


def tokens_of(log: evo.Log) -> list[float]:
    """Tokens of the generations from 1 on."""
    return [each["tokens"] for each in costs_of_log(log)[1:]]


def bare(call: Outcome) -> Outcome:
    """A call as if it had been made at the header's prices."""
    attempts = (msgspec.structs.replace(each, rates={}) for each in call.attempts)
    return msgspec.structs.replace(call, attempts=tuple(attempts))


@pytest.mark.parametrize(("before", "after"), [(1.0, 100.0), (100.0, 1.0)])
def test_sessions_at_different_prices_add_up(
    before: float, after: float, url: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"children": 3, "max_tokens": 1000, **QUIET}
    evo.run("mmd", model=priced(url, before), generations=2, log=path, **how)
    log = evo.resume(path, model=priced(url, after), generations=4, **QUIET)
    tokens = tokens_of(log)
    paid = (sum(tokens[:2]) * before + sum(tokens[2:]) * after) / 1e6
    assert sum(each["dollars"] for each in costs_of_log(log)) == pytest.approx(paid)
    assert cost_of_calls(log.calls, log.header).dollars == pytest.approx(paid)
    in_table = replay.load(path)
    assert in_table["dollars"].sum() == pytest.approx(paid)
    # The ledger counts what was paid, not what it would cost now.
    again = evo.resume(
        path, model=priced(url, before), generations=9, budget={"dollars": 0.9 * paid}, **QUIET
    )
    assert len(again.generations) == 4


def test_another_model_is_counted_as_what_it_is(url: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"children": 2, "max_tokens": 1000, **QUIET}
    evo.run("mmd", model=priced(url, 1.0), generations=1, log=path, **how)
    other = evo.Model(name="other", id="offline", base_url=url, active_parameters=30)
    with pytest.warns(UserWarning, match="made with the model 'a' and goes on with 'other'"):
        log = evo.resume(path, model=other, generations=2, **QUIET)
    flops, own = [each["flops"] for each in costs_of_log(log)], cost_of_calls(log.calls, log.header)
    plain = cost_of_calls([bare(each) for each in log.outcomes], log.header)
    assert own.flops == pytest.approx(sum(flops))
    assert own.flops == pytest.approx(3 * (plain.flops or 0.0) - 2 * flops[1])
    assert replay.load(path)["flops"].tolist() == pytest.approx(flops)
    assert cost_of_children(log.outcomes, log.header.model, log.header.sampling).dollars is None
    assert replay.load(path)["dollars"].isna().tolist() == [False, False, True]


def test_several_models_are_chosen_again_as_they_were(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(cheap: float, dear: float) -> None:
        text = "".join(
            f'[{name}]\nid = "offline"\nbase_url = "{url}"\ninput_price = {price}\n'
            f"output_price = {price}\n"
            for name, price in (("cheap", cheap), ("dear", dear))
        )
        (tmp_path / "models.toml").write_text(text)

    monkeypatch.setenv("EVO_MODELS", str(tmp_path / "models.toml"))
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"children": 4, "max_tokens": 1000, "seed": 3, **QUIET}
    write(1.0, 50.0)
    evo.run("mmd", models=["cheap", "dear"], generations=3, log=path, **how)
    write(1000.0, 1.0)
    log = evo.resume(path, generations=6, **QUIET)
    assert {attempt.rates.get("input_price") for attempt in log.outcomes[-1].attempts} <= {1000, 1}
    assert evo.rerun(path).same
    forked = evo.fork(path, at=5, generations=6, log_dir=tmp_path / "forks", **QUIET)[0]
    assert evo.rerun(forked.path).same
