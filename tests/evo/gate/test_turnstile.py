"""The turnstile: requests wait until they are granted, and none passes that was not."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from gates import KEY, Upstream, logged, posting

from evo.gate.gate import Gate, Passage, Supervision
from evo.gate.turnstile import Turnstile
from evo.models import background


class Changes:
    """Waits until something holds, looking whenever a turnstile changes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def until(self, holds: object) -> None:
        assert callable(holds)
        with self._changed:
            assert self._changed.wait_for(holds, 30)


def enter(turnstile: Turnstile) -> Future[bool]:
    """A request that enters, and whether it passes once that is known."""
    return background.start(turnstile.enter())


def test_requests_pass_as_granted_in_the_order_of_arrival() -> None:
    changes = Changes()
    turnstile = Turnstile(on_change=changes)
    every = []
    for number in range(5):
        every.append(enter(turnstile))
        changes.until(lambda most=number + 1: turnstile.waiting == most)
    turnstile.grant(2)
    assert [each.result(30) for each in every[:2]] == [True, True]
    assert (turnstile.passed, turnstile.granted, turnstile.waiting) == (2, 0, 3)
    assert not any(each.done() for each in every[2:])
    turnstile.grant(1)
    assert every[2].result(30)
    turnstile.grant(1)
    turnstile.give_back()  # a request that passed went nowhere: one more may pass
    assert every[3].result(30)
    assert every[4].result(30)
    assert turnstile.passed == 4


def test_who_leaves_uses_no_grant_and_holds_up_nobody() -> None:
    changes = Changes()
    turnstile = Turnstile(on_change=changes)
    left, stays = enter(turnstile), enter(turnstile)
    changes.until(lambda: turnstile.waiting == 2)
    left.cancel()
    changes.until(lambda: turnstile.waiting == 1)
    turnstile.grant(1)
    assert stays.result(30)
    assert (turnstile.passed, turnstile.granted) == (1, 0)
    turnstile.grant(3)
    turnstile.revoke()
    assert turnstile.granted == 0


def test_who_leaves_at_the_moment_of_its_grant_gives_it_back() -> None:
    async def both() -> tuple[int, bool]:
        turnstile = Turnstile()
        first, second = (asyncio.create_task(turnstile.enter()) for _ in range(2))
        await asyncio.sleep(0)
        turnstile.grant(1)
        first.cancel()  # it was let through, and has not yet heard of it
        return turnstile.waiting, await asyncio.wait_for(second, 30)

    assert background.wait(both()) == (1, True)


def test_a_flood_closes_it_for_good() -> None:
    changes = Changes()
    turnstile = Turnstile(most=3, on_change=changes)
    waiting = [enter(turnstile) for _ in range(3)]
    changes.until(lambda: turnstile.waiting == 3)
    assert not turnstile.flooded
    assert not enter(turnstile).result(30)
    assert [each.result(30) for each in waiting] == [False] * 3
    assert turnstile.flooded
    turnstile.grant(5)
    assert not enter(turnstile).result(30)
    assert turnstile.passed == 0


def test_a_closed_one_turns_everybody_away() -> None:
    changes = Changes()
    turnstile = Turnstile(on_change=changes)
    waiting = enter(turnstile)
    changes.until(lambda: turnstile.waiting == 1)
    turnstile.close()
    assert not waiting.result(30)
    turnstile.grant(1)
    assert not enter(turnstile).result(30)
    assert not turnstile.flooded


@pytest.mark.parametrize("streams", [False, True])
def test_a_gate_forwards_what_is_granted_and_tells_of_it(
    streams: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_KEY", KEY)
    changes, told = Changes(), list[Passage]()
    turnstile = Turnstile(on_change=changes)
    log = tmp_path / "gate.jsonl"

    def events(handler, body, number) -> None:  # type: ignore[no-untyped-def]
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for word in ("h", "i"):
            handler.wfile.write(
                b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % word.encode()
            )
        handler.wfile.write(b"data: [DONE]\n\n")
        handler.close_connection = True

    upstream = Upstream(events) if streams else Upstream()
    with upstream, ThreadPoolExecutor(3) as pool:
        gate = Gate(upstream.model, log=log, supervision=Supervision(turnstile, told.append))
        with gate, posting(gate) as one, posting(gate) as two, posting(gate) as three:
            clients = [pool.submit(post, stream=streams) for post in (one, two, three)]
            changes.until(lambda: turnstile.waiting == 3)
            assert upstream.seen == []
            turnstile.grant(2)
            done, left = wait(clients, 30, return_when="FIRST_COMPLETED")
            changes.until(lambda: turnstile.passed == 2)
            while len(done) < 2:
                more, left = wait(left, 30, return_when="FIRST_COMPLETED")
                done |= more
            assert [each.result()[0] for each in done] == [200, 200]
            assert len(upstream.seen) == 2
            assert turnstile.waiting == 1
            turnstile.close()
            status, _, headers = next(iter(left)).result(30)
            assert (status, headers["x-should-retry"]) == (429, "false")
    assert sorted(each.number for each in told) == [0, 1]
    assert {(each.reply, each.attempt.status) for each in told} == {("hi", "ok")}
    assert told[0].body["messages"] == [{"role": "user", "content": "hi"}]
    assert len(logged(log)["sent"]) == len(logged(log)["settled"]) == 2
