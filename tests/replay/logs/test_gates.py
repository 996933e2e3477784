"""The log of a gate as a table, request by request."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from samples import write_sample

import replay
from evo.gate.log import Kept, Opened, Sent, Settled
from evo.logs.journal import LogError, encode_line
from evo.logs.records import Attempt, Model

MODEL = Model(name="m", active_parameters=10, input_price=1.0, output_price=2.0)


def sent(number: int, at: float, client: str = "a") -> Sent:
    return Sent(number=number, at=at, client=client, body="b", worst={})


def settled(number: int, status: str = "ok", **fields: object) -> Settled:
    attempt = Attempt(status=status, latency=fields.pop("latency", 1.5), **fields)
    return Settled(number=number, at=99.0, attempt=attempt)


def table_of(path: Path, *lines: object, model: Model = MODEL) -> pd.DataFrame:
    opened = Opened(model=model, began=9.0)
    path.write_bytes(b"".join(map(encode_line, [opened, *lines])))
    return replay.gate_calls(path)


def test_requests_stand_in_the_order_of_their_time_those_of_the_cache_among_them(
    tmp_path: Path,
) -> None:
    kept = [Kept(at=at, client="a", body="b") for at in (11.0, 13.0)]
    table = table_of(tmp_path / "g.jsonl", *kept, *(sent(k, 10.0 + 2 * k) for k in range(3)))
    assert table["at"].tolist() == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert table["number"].tolist() == [0, -1, 1, -1, 2]
    free = table[table["number"] < 0]
    assert free["status"].eq("cached").all()
    assert free[["seconds", "completion_tokens", "flops", "dollars"]].eq(0).all(axis=None)


def test_a_request_costs_what_its_usage_costs_at_the_models_rates(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 8,
             "prompt_tokens_details": {"cached_tokens": 20}}  # fmt: skip
    [row] = table_of(
        tmp_path / "g.jsonl", sent(4, 10.0), settled(4, usage=usage, http_status=200)
    ).to_dict("records")
    assert (row["client"], row["number"], row["seconds"]) == ("a", 4, 1.5)
    assert (row["status"], row["http_status"]) == ("ok", 200)
    assert (row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"]) == (50, 20, 8)
    assert row["dollars"] == pytest.approx((50 * 1.0 + 8 * 2.0) / 1e6)  # no price of cached ones
    assert row["flops"] > 0
    assert (row["model"], row["source"]) == ("m", str(tmp_path / "g.jsonl"))


def test_what_is_unknown_is_nan_and_what_failed_says_why(tmp_path: Path) -> None:
    table = table_of(
        tmp_path / "g.jsonl", sent(0, 1.0), sent(1, 2.0), sent(2, 3.0),
        settled(1, "error", http_status=500, error="broken", latency=None),
        settled(2, usage=None),
    ).set_index("number")  # fmt: skip
    assert table["status"].tolist() == ["not settled", "error", "ok"]
    assert math.isnan(table.loc[0, "seconds"])
    assert math.isnan(table.loc[1, "seconds"])
    assert (table.loc[1, "error"], table.loc[1, "http_status"]) == ("broken", 500)
    for number in (0, 2):  # one was never answered, the other's usage is not known
        assert table.loc[number, ["prompt_tokens", "completion_tokens", "dollars"]].isna().all()


def test_several_gates_stand_after_each_other_and_an_empty_one_has_the_columns(
    tmp_path: Path,
) -> None:
    empty = table_of(tmp_path / "0.jsonl")
    assert len(empty) == 0
    table_of(tmp_path / "1.jsonl", sent(0, 50.0, "x"))
    table_of(tmp_path / "2.jsonl", sent(0, 5.0, "y"), model=Model(name="n"))
    both = replay.gate_calls(*(tmp_path / f"{k}.jsonl" for k in range(3)))
    assert both["client"].tolist() == ["x", "y"]
    assert both["model"].tolist() == ["m", "n"]
    assert both.columns.tolist() == empty.columns.tolist()


def test_the_log_of_a_run_is_none_of_a_gate(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"a\.jsonl:1: .*log of a gate"):
        replay.gate_calls(write_sample(tmp_path / "a.jsonl"))
