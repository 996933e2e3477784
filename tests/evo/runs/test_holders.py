"""What writes a log in this process is found by its path, and taken over once."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import sample_header

from evo.runs.holders import Holder, hold, holder_of, holders, let_go, take_over


def test_a_holder_is_found_by_any_path_to_its_log_and_taken_over_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    released: list[str] = []
    for name in "ab":
        made = Holder(sample_header(), name, lambda name=name: released.append(name))
        hold(Path(f"{name}.jsonl"), made)
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert [holder_of(path).owner for path in (one, other)] == ["a", "b"]  # type: ignore[union-attr]
    assert holder_of(Path("b.jsonl")) is holder_of(other)
    assert {path for path, _ in holders()} >= {one, other}
    take_over([one, tmp_path / "c.jsonl", one])
    assert released == ["a"]
    assert holder_of(one) is None
    let_go([other, other])
    assert holder_of(other) is None
    take_over([other])
    assert released == ["a"]
