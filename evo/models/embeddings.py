"""Embeddings of programs: one logged call for each text, whoever compares them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from evo.logs.cost import RATES
from evo.logs.records import Attempt, EmbeddingCall, Model
from evo.logs.vectors import decode_vector, embedding_key
from evo.models.answer import EMBEDDINGS
from evo.models.client import (
    Call,
    CallCancelled,
    Caller,
    EndpointError,
    Messages,
    ModelClient,
    was_sent,
)
from evo.models.critics import Known

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.int16]


class NoEmbedding(Exception):  # noqa: N818
    """A text has no embedding, so that nobody can say what it is similar to."""


class EmbeddingClient(ModelClient):
    """Asks one model for embeddings: a reply is a vector as a log holds it.

    The content of the messages is what is embedded. In all else it is a `ModelClient`, with its
    slots, retries, deadlines and keys.
    """

    _service = EMBEDDINGS

    def _body(self, messages: Messages, seed: int) -> dict[str, object]:
        """Returns the request; vectors are no matter of a seed."""
        body = {
            "model": self.model.id or self.model.name,
            "input": [message["content"] for message in messages],
            "encoding_format": "float",
        } | self.model.extra_body
        return {name: value for name, value in body.items() if value is not None}


class Embedder:
    """Embeds texts by one model, each once; many threads may share it.

    What is `known` grows; no call begins once `stopping` is set; `on_call` receives each call in
    the thread that made it.

    Args:
        name: What identifies the model: vectors of another one are not compared with its own.
        model: The model, with its prices.
        caller: Makes the calls; None: all vectors are known, as in a log that is played again.
        on_call: Takes each call.
        known: Calls that are not made again.
        stopping: Whether no further call begins.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        caller: Caller | None,
        on_call: Callable[[EmbeddingCall], None],
        known: Known,
        stopping: threading.Event | None = None,
    ) -> None:
        self._name, self._model, self._caller, self._on_call = name, model, caller, on_call
        self._known, self._turns = known, dict[str, threading.Lock]()
        self._stopping = stopping or threading.Event()
        self._vectors: dict[str, Vector] = {}
        self._rates = {each: getattr(model, each) for each in RATES}

    def embed(self, text: str, *, generation: int = 0, index: int = 0) -> Vector:
        """Returns the vector of a text, asked for now unless it is known, and logged then.

        The index of a child says only whose call goes first: several may want one vector.

        Raises:
            NoEmbedding: The model has none for this text.
            EndpointError: The endpoint does not answer, or refuses.
            CallCancelled: Calls were cancelled, or a stop was asked for.
        """
        if (vector := self._vectors.get(text)) is None:
            call = self._ask(text, generation, index)
            vector = self._vectors[text] = decode_vector(call.reply or "")
        return vector

    def _ask(self, text: str, generation: int, index: int) -> EmbeddingCall:
        key = embedding_key(self._name, text)
        with self._turns.setdefault(key, threading.Lock()):
            if isinstance(known := self._known.get((key, None)), EmbeddingCall):
                return known
            if self._caller is None:
                raise NoEmbedding("the log holds none of this program")
            if self._stopping.is_set():
                raise CallCancelled("a stop was asked for")
            made = self._make(self._caller, text, key, generation, index)
            call = self._log(key, generation, made.attempts, made.reply)
            if call.reply is None:  # what failed may do better another time
                last = call.attempts[-1].error if call.attempts else None
                raise NoEmbedding(made.rejected or last or "the model gave none")
            self._known[key, None] = call
            return call

    def _make(self, caller: Caller, text: str, key: str, generation: int, index: int) -> Call:
        """Makes a call; one that the run ends with is logged if it was sent."""
        message, seed = {"role": "user", "content": text}, int(key[:8], 16) >> 1
        try:
            return caller.call([message], seed=seed, generation=generation, index=index)
        except (EndpointError, CallCancelled) as error:
            if was_sent(error):
                self._log(key, generation, error.attempts)
            raise
        except KeyboardInterrupt as interrupt:  # in the main thread, which makes the call
            cause = interrupt.__cause__
            if isinstance(cause, CallCancelled) and was_sent(cause):
                self._log(key, generation, cause.attempts)
            raise

    def _log(
        self,
        key: str,
        generation: int,
        made: tuple[Attempt, ...],
        reply: str | None = None,
    ) -> EmbeddingCall:
        """Logs a call at the prices of now, since the header does not hold them."""
        attempts = tuple(msgspec.structs.replace(each, rates=self._rates) for each in made)
        call = EmbeddingCall(
            generation=generation, program=key, index=0, attempts=attempts, reply=reply,
            model=self._model.name,
        )  # fmt: skip
        self._on_call(call)
        return call
