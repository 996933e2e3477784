"""What a gate counts, admits and refuses."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from gates import Upstream

from evo.gate.account import Account, Refused
from evo.gate.log import Opened, Sent, Settled
from evo.logs.journal import encode_line
from evo.logs.records import Attempt


@pytest.mark.parametrize(
    ("age", "waits"), [(0.0, 60.0), (20.0, 40.0), (90.0, None), (-3600.0, 60.0)]
)
def test_a_gate_that_goes_on_knows_when_the_requests_of_its_log_were_sent(
    tmp_path: Path, age: float, waits: float | None
) -> None:
    """Also where the clock was set back meanwhile, so that they seem to be still to come."""
    path, at = tmp_path / "g.jsonl", time.time() - age
    with Upstream() as upstream:
        model = upstream.model
    sent = Sent(number=0, at=at, client="a", body="b", worst={})
    answered = Attempt(status="ok", latency=0.1, http_status=200)
    lines = [Opened(model=model, began=at), sent, Settled(number=0, at=at, attempt=answered)]
    path.write_bytes(b"".join(map(encode_line, lines)))
    account = Account(model, {}, rpm=1, tpm=None)
    with ExitStack() as opened:
        account.open_log(path, opened)
        if waits is None:
            assert account.admit("a", "b", {"tokens": 1.0}).number == 1
        else:
            with pytest.raises(Refused) as refused:
                account.admit("a", "b", {"tokens": 1.0})
            assert refused.value.wait is not None
            assert 0 < refused.value.wait <= waits
