"""The closed sets of words that a log uses, and what a log with another word is."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from evo.logs.literals import EDITS, KEPT_OUT, STATUSES, EndReason, Evolves, Isolation, Status
from evo.logs.records import RunEnd, TaskRecord
from evo.tasks.task import load_task


@pytest.mark.parametrize(
    ("record", "name", "words"),
    [
        (RunEnd(reason="completed", stats={}), "reason", get_args(EndReason)),
        (load_task("mmd").record, "isolation", get_args(Isolation)),
        (load_task("mmd").record, "evolves", get_args(Evolves)),
    ],
)
def test_a_log_holds_the_words_of_a_set_and_no_other(
    record: Any, name: str, words: tuple[str, ...]
) -> None:
    kind: type[RunEnd | TaskRecord] = type(record)
    for word in words:
        made = msgspec.structs.replace(record, **{name: word})
        assert msgspec.json.decode(msgspec.json.encode(made), type=kind) == made
    other = msgspec.json.encode(msgspec.structs.replace(record, **{name: "nonsense"}))
    with pytest.raises(msgspec.ValidationError, match="nonsense"):
        msgspec.json.decode(other, type=kind)


def test_what_is_iterated_is_what_the_types_say() -> None:
    assert get_args(Status) == STATUSES
    assert len({*STATUSES}) == len(STATUSES)
    assert EDITS[0] == "rewrite"  # the default comes first
    assert {*KEPT_OUT} < {*STATUSES} - {"ok"}
