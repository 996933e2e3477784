"""Server-sent events on their way through a gate."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable

from evo.logs.cost import usage_tokens
from evo.logs.fitting import fit_usage
from evo.logs.records import Attempt
from evo.logs.types import JsonObject
from evo.models.answer import fit_reason, read_json, write_json
from evo.models.client import TOKENS_PER_CHARACTER

_PIECES = ("content", "reasoning_content", "reasoning")


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
        self._keeps_text = keeps_text
        self._text: list[str] = []
        self._heard = self._characters = 0  # pieces of reply and reasoning, and their length
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

    def left(self, prompt: float, most: float) -> Attempt:
        """Returns the record of a reply whose client left before it was whole.

        Without the endpoint's usage, tokens are estimated: a piece of a stream is at least one, and
        a text has as many for each character as is assumed of prompts.

        Args:
            prompt: Characters of the request.
            most: Tokens that prompt and reply can have together.
        """
        usage, error = self._usage, "the client left"
        if usage_tokens(usage) is None:
            asked = min(most, math.ceil(prompt * TOKENS_PER_CHARACTER))
            came = max(self._heard, math.ceil(self._characters * TOKENS_PER_CHARACTER))
            counts = {
                "prompt_tokens": int(asked),
                "completion_tokens": int(min(most - asked, came)),
            }
            usage, error = {**counts, "estimated": True}, f"{error}; its tokens are estimated"
        latency = time.monotonic() - self.started
        return Attempt(status="error", latency=latency, usage=usage, error=error)

    def _line(self, line: bytes) -> bytes:
        line = self._hide(line)
        self.whole |= line.startswith(b"data:") and line[5:].strip() == b"[DONE]"
        if not line.startswith(b"data:"):
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
        if not isinstance(delta, dict):
            return
        for name in _PIECES:
            if isinstance(piece := delta.get(name), str) and piece:
                self._heard, self._characters = self._heard + 1, self._characters + len(piece)
                if name == "content" and self._keeps_text:
                    self._text.append(piece)
