"""Server-sent events on their way through a gate."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from evo.logs.fitting import fit_usage
from evo.logs.records import Attempt
from evo.logs.types import JsonObject
from evo.models.answer import fit_reason, read_json, write_json


class Events:
    """Server-sent events on their way through: what they say of tokens, and who is to see that."""

    def __init__(
        self,
        asks_usage: bool,
        started: float,
        hide: Callable[[bytes], bytes],
        keeps_text: bool = False,
    ) -> None:
        self.started, self.whole = started, False
        self.finish: str | None = None
        self._marks = (b'"usage"', b'"finish_reason"', *((b'"content"',) if keeps_text else ()))
        self._text: list[str] = []
        self._asks_usage, self._hide = asks_usage, hide
        self._usage: JsonObject | None = None

    async def read(self, answer: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields what the client gets."""
        rest = b""
        async for piece in answer:
            *lines, rest = (rest + piece).split(b"\n")
            if out := b"".join(self._line(line + b"\n") for line in lines):
                yield out
        if out := self._line(rest):
            yield out

    @property
    def text(self) -> str:
        """The text of the reply so far, if it is kept."""
        return "".join(self._text)

    @property
    def attempt(self) -> Attempt:
        """The record of a whole reply."""
        return Attempt(
            status="ok",
            latency=time.monotonic() - self.started,
            http_status=200,
            usage=self._usage,
            finish_reason=self.finish,
        )

    def _line(self, line: bytes) -> bytes:
        line = self._hide(line)
        self.whole |= line.startswith(b"data:") and line[5:].strip() == b"[DONE]"
        if not line.startswith(b"data:") or not any(mark in line for mark in self._marks):
            return line
        try:
            event = read_json(line[5:])
        except (ValueError, RecursionError):
            return line
        if not isinstance(event, dict):
            return line
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._hear(choice.get("delta"))
                self.finish = fit_reason(choice.get("finish_reason")) or self.finish
        self._usage = fit_usage(event.get("usage")) or self._usage
        if self._asks_usage or "usage" not in event:
            return line
        del event["usage"]
        return b"data: " + write_json(event) + b"\n" if choices else b""

    def _hear(self, delta: object) -> None:
        piece = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(piece, str):
            self._text.append(piece)
