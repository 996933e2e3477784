"""The log as the model: replies of logged children, for `evo rerun`."""

from __future__ import annotations

from collections.abc import Iterable

from evo.logs.records import Child, Model, Sampling
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
        compact: Whether the log has no replies.
    """

    def __init__(
        self,
        children: Iterable[Child],
        *,
        model: Model,
        sampling: Sampling,
        width: int = 1,
        compact: bool = False,
    ) -> None:
        self.model, self.sampling, self._compact = model, sampling, compact
        self._children = {child.reply_key(width)[:2]: child for child in children}
        self._differing: set[tuple[int, int]] = set()
        self._cancelled = False

    @property
    def differing(self) -> list[tuple[int, int]]:
        """(generation, index) of children whose prompt is not the logged one, in order."""
        return sorted(self._differing)

    def call(self, messages: Messages, *, seed: int, generation: int, index: int) -> Call:
        """Returns the logged attempts and reply; a prompt that differs is noted in `differing`."""
        if self._cancelled:
            raise CallCancelled("the call was cancelled")
        if self._compact:
            raise ReplyMissing("a compact log holds no replies, so it cannot be rerun")
        place = (generation, index)
        child = self._children.get(place)
        if child is None:
            raise ReplyMissing(f"the log holds no child {index} of generation {generation}")
        if prompt_hash(messages) != child.prompt_hash:
            self._differing.add(place)
        answered = child.reply is not None and child.attempts
        finish = child.attempts[-1].finish_reason if answered else None
        return Call(child.attempts, child.reply, child.reasoning, finish)

    def cancel(self) -> None:
        """Makes later calls raise `CallCancelled`."""
        self._cancelled = True

    def close(self) -> None:
        """Does nothing: there is nothing to let go of."""
