"""Refuses a program whose embedding is nearly that of one of the archive."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from evo.capture.running import short_hash, source_of
from evo.logs.records import Model
from evo.logs.vectors import COMPARING, cosines, decode_vector, encode_vector, vectors_in
from evo.plugins import MistakenType
from evo.searches.base import Member, Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_here: dict[str, Model | Callable[..., object]] = {}
"""Functions and clients by the names that logs know them by: a log that goes on finds them."""


WAYS = ("function ", "client ")
"""How the name of what embeds begins, where that is not known by its name alone."""


@dataclass(frozen=True)
class NearEmbeddings:
    """Refuses a program whose embedding is nearly that of an earlier one.

    Each vector is asked for once and is a line of the log, so that a log is played again and goes
    on without another call for it. A program that cannot be embedded is refused as well, and its
    reason says why: nobody knows whether it is new.

    Attributes:
        embed: What embeds: a function of a list of texts that returns a vector for each, or the
            name of an embedding model at the endpoint of the run's own model, or an `evo.Model`.
            A log knows a function by its name and a hash of its source.
        threshold: The least cosine similarity at which a program is refused, from -1 to 1.

    Example:
        >>> def letters(texts):
        ...     return [[1 + text.count(each) for each in "abcxyz"] for text in texts]
        >>> alike = evo.filters.NearEmbeddings(embed=letters, threshold=0.95)
        >>> earlier = evo.searches.Member((0, 0), 0.5, program="x = y + 1")
        >>> alike.check("y = x + 2", [earlier])
        'the embedding of generation 0, child 0 has the cosine similarity 1.000'
    """

    embed: Any = ""
    threshold: float = 0.99

    name = COMPARING

    def __post_init__(self) -> None:
        real = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        if not real or not -1 <= self.threshold <= 1:
            raise ValueError(
                f"threshold: expected a cosine similarity from -1 to 1, got {self.threshold!r:.60}"
            )
        if isinstance(self.embed, str) and self.embed:
            return
        if isinstance(self.embed, type | str) or not (
            isinstance(self.embed, Model) or callable(self.embed)
        ):
            raise MistakenType(
                "embed: expected a function of a list of texts that returns a vector for each, "
                "an evo.Model, or the name of an embedding model (--filter-set "
                f"near_embeddings.embed=NAME), got {self.embed!r:.80}"
            )
        given, name = self.embed, _name_of(self.embed)
        if name.startswith(WAYS):
            _here[name] = given
        object.__setattr__(self, "_given", given)
        object.__setattr__(self, "embed", name)

    @property
    def given(self) -> Model | Callable[..., object] | None:
        """What embeds; None: a model that is known by its name alone.

        Raises:
            ValueError: It is a function or a client of another process.
        """
        found: Model | Callable[..., object] | None
        found = self.__dict__.get("_given") or _here.get(self.embed)
        if found is None and self.embed.startswith(WAYS):
            raise ValueError(
                f"filter {self.name!r}: {self.embed!r} was of the process that made the log, and a "
                "log does not hold it: make the filter here as it was, "
                "evo.filters.NearEmbeddings(embed=...), and go on then"
            )
        return found

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns which program of the archive is nearly the same by its embedding, or None.

        It is for a function; a run compares what it has logged, and asks a model.
        """
        given = self.given
        function = given.function if isinstance(given, Model) else given
        if function is None:
            raise ValueError(
                f"embed: expected a function here, got the model {self.embed!r}, which is asked "
                "within a run alone"
            )
        texts = [program, *(member.program or "" for member in archive)]
        found = vectors_in(function(texts), len(texts))
        own, *others = (decode_vector(encode_vector(each)) for each in found)
        places = [member.place for member in archive]
        return self.compare(own, list(zip(places, others, strict=True)))

    def compare(
        self, own: NDArray[np.int16], archive: Sequence[tuple[Place, NDArray[np.int16]]]
    ) -> str | None:
        """Returns which vector of the archive, the most similar one, is at the threshold, or None.

        Raises:
            ValueError: The vectors are not of one length.
        """
        for (generation, index), vector in archive:
            if len(vector) != len(own):
                raise ValueError(
                    f"expected embeddings of one length, got {len(own)} numbers, and {len(vector)} "
                    f"for generation {generation}, child {index}: another model answers to "
                    f"{self.embed!r} than before; have that one answer, or begin another run"
                )
        if not archive:
            return None
        similar = cosines(own, [vector for _, vector in archive])
        nearest = int(similar.argmax())
        if similar[nearest] < self.threshold:
            return None
        generation, index = archive[nearest][0]
        return (
            f"the embedding of generation {generation}, child {index} has the cosine similarity "
            f"{similar[nearest]:.3f}"
        )


def _name_of(given: Model | Callable[..., object]) -> str:
    """Returns what a log calls a model, and a function with a hash of its source."""
    if isinstance(given, Model):
        version = given.version or ""
        return (
            given.name if given.way == "endpoint" else f"{given.way} {given.name} {version}".strip()
        )
    text = source_of(given).text
    name = getattr(given, "__name__", None) or type(given).__name__
    # One without a source is like no other, as it is among models.
    return f"function {name} {short_hash(text) if text else uuid.uuid4().hex[:16]}"
