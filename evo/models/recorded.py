"""The log as the model: replies of logged children, for `evo rerun`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evo.logs.records import Advice, Child, Model, Sampling
from evo.models.client import Call, CallCancelled, Messages, prompt_hash


class ReplyMissing(Exception):  # noqa: N818
    """The log does not hold the reply that is asked for."""


class RecordedModel:
    """Answers each call with what the children of one log hold.

    Args:
        children: The children of the log.
        model: Its model.
        sampling: How that was sampled.
        width: The children of a generation, N.
        advice: Calls for advice, by generation; each has index N.
        compact: Whether the log has no replies.
    """

    def __init__(
        self,
        children: Iterable[Child],
        *,
        model: Model,
        sampling: Sampling,
        width: int = 1,
        advice: Mapping[int, Advice] | None = None,
        compact: bool = False,
    ) -> None:
        self.model, self.sampling, self._compact = model, sampling, compact
        self._made: dict[tuple[int, int], Child | Advice] = {
            child.reply_key(width)[:2]: child for child in children
        }
        self._made |= {(number, width): call for number, call in (advice or {}).items()}
        self._differing: set[tuple[int, int]] = set()
        self._cancelled = False

    @property
    def differing(self) -> list[tuple[int, int]]:
        """(generation, index) of calls whose prompt is not the logged one, in order."""
        return sorted(self._differing)

    def call(self, messages: Messages, *, seed: int, generation: int, index: int) -> Call:
        """Returns the logged attempts and reply; a prompt that differs is noted in `differing`."""
        if self._cancelled:
            raise CallCancelled("the call was cancelled")
        if self._compact:
            raise ReplyMissing("a compact log holds no replies, so it cannot be rerun")
        place = (generation, index)
        made = self._made.get(place)
        if made is None:
            raise ReplyMissing(f"the log holds no child {index} of generation {generation}")
        if prompt_hash(messages) != made.prompt_hash:
            self._differing.add(place)
        answered = made.reply is not None and made.attempts
        finish = made.attempts[-1].finish_reason if answered else None
        return Call(made.attempts, made.reply, made.reasoning, finish)

    def cancel(self) -> None:
        """Makes later calls raise `CallCancelled`."""
        self._cancelled = True

    def close(self) -> None:
        """Does nothing: there is nothing to let go of."""
