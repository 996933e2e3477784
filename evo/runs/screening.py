"""Filters at work: they are asked in their order, and those that compare embeddings make calls.

What embeds is found anew whenever a log goes on, in this process or by its name: as for models, a
log does not decide where a call goes.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evo.filters.base import LONGEST, Filter, exclusion, refusal
from evo.filters.near_embeddings import NearEmbeddings
from evo.filters.registry import filters_of
from evo.logs.log import Log
from evo.logs.records import EmbeddingCall, Header, Model, Outcome
from evo.logs.vectors import NO_VECTOR
from evo.models.critics import Known, known_of
from evo.models.embeddings import Embedder, NoEmbedding
from evo.models.offline import OFFLINE_MODELS
from evo.models.registry import find_model, load_models
from evo.runs.items import CompareItem, Item, ScreenItem, Step
from evo.searches.base import Member, Place

if TYPE_CHECKING:
    from evo.runs.resources import Resources


def screened(
    program: str, filters: Sequence[Filter], archive: Sequence[Member], place: Place
) -> Step[str | None]:
    """Returns why the first of some filters refuses a program, or None.

    NoEmbedding: One that compares embeddings could not.
    """
    for compares, group in itertools.groupby(filters, _comparing):
        item: Item = ScreenItem(program, tuple(group), archive)
        if compares is not None:
            item = CompareItem(program, compares, archive, place)
        reason: str | None = yield item
        if reason is not None:
            return reason
    return None


def _comparing(each: Filter) -> NearEmbeddings | None:
    return each if isinstance(each, NearEmbeddings) else None


def embedding_models(header: Header) -> list[Model]:
    """Returns the models that the filters of a run ask for embeddings, with their prices.

    Raises:
        ValueError: One is not here, or makes no embeddings.
    """
    if not header.filters:
        return []
    comparing = filter(None, map(_comparing, filters_of(header)))
    return [embedding_model(each, header.model) for each in comparing]


def embedding_model(of: NearEmbeddings, run: Model) -> Model:
    """Returns the model that a filter asks; a mere name is asked for where the run's model is."""
    given = of.given
    found = _named(of.embed, run) if given is None else find_model(given)
    if found.name in OFFLINE_MODELS and found.base_url is None and found.way == "endpoint":
        raise ValueError(
            f"embed: the model {found.name!r} makes no embeddings; name one that does, or give a "
            "function of a list of texts"
        )
    free = ("input_price", "active_parameters") if found.way == "function" else ()
    zero = {n: 0 for n in ("output_price", *free) if getattr(found, n) is None}
    return found.but(**zero) if zero else found


def _named(name: str, run: Model) -> Model:
    """Returns the model of a name: the user's own, else one at the endpoint of the run's model."""
    if name in load_models():
        return find_model(name)
    if run.client_object is not None:
        return find_model(Model(name, client=run.client_object, share=run.shares))
    there = run.base_url if run.way == "endpoint" else None
    return find_model(Model(name, base_url=there, key_variable=run.key_variable if there else None))


def unembedded(children: Sequence[Outcome], width: int) -> dict[Place, str]:
    """Returns why children of a log could not be compared, by the places of their calls."""
    found = {}
    for child in children:
        reason = child.evaluation.error or ""
        lost = reason.startswith(f"{NearEmbeddings.name}: {NO_VECTOR}")
        if lost and child.evaluation.status == "rejected":
            found[child.reply_key(width)[:2]] = reason
    return found


class Screening:
    """Asks the filters of one run, with what embeds for them; many threads may share it.

    Args:
        header: Configuration of the run.
        resources: What the session shares.
        on_call: Takes each call for an embedding.
        known: Calls that are not made again.
    """

    def __init__(
        self,
        header: Header,
        resources: Resources,
        on_call: Callable[[EmbeddingCall], None],
        known: Known,
    ) -> None:
        self._played: dict[Place, str] = {}
        self._header, self._resources = header, resources
        self._on_call, self._known = on_call, known
        self._opening, self._embedders = threading.Lock(), dict[str, Embedder]()

    def play(self, log: Log) -> None:
        """Takes the vectors of a log, and why some of its children could not be compared."""
        self._known.update(known_of(call for call in log.embedding_calls if call.reply is not None))
        self._played = unembedded(log.outcomes, log.header.children)

    def screen(self, item: ScreenItem) -> str | None:
        """Returns why filters refuse a program, or keep it out of the archive, or None."""
        with self._resources.screening:
            if item.evaluation is not None:
                return exclusion(item.evaluation, filters=item.filters, archive=item.archive)
            return refusal(item.program, filters=item.filters, archive=item.archive)

    def compare(self, item: CompareItem, generation: int) -> str | None:
        """Returns why a program is refused, or None; calls are logged under a generation.

        Raises:
            NoEmbedding: The program, or one that it is compared with, has none.
            ValueError: The vectors cannot be compared.
        """
        if item.place in self._played:
            raise NoEmbedding(self._played[item.place])
        embedder, own = self._embedder(item.filter), item.filter.name
        asking = "it"
        try:
            vector = embedder.embed(item.program, generation=generation, index=item.place[1])
            earlier = []
            for member in item.archive:
                asking = f"generation {member.place[0]}, child {member.place[1]}"
                found = embedder.embed(
                    member.program or "", generation=generation, index=item.place[1]
                )
                earlier.append((member.place, found))
        except NoEmbedding as error:
            raise NoEmbedding(f"{own}: {NO_VECTOR} of {asking}: {error}"[:LONGEST]) from error
        with self._resources.screening:
            try:
                reason = item.filter.compare(vector, earlier)
            except ValueError as error:
                raise ValueError(f"filter {own!r}: {error}") from error
        return reason and f"{own}: {reason}"

    def _embedder(self, of: NearEmbeddings) -> Embedder:
        with self._opening:
            if of.embed not in self._embedders:
                model, caller = Model(of.embed), None
                if self._resources.only is None:
                    model = embedding_model(of, self._header.model)
                    caller = self._resources.embedding_caller(model)
                self._embedders[of.embed] = Embedder(
                    of.embed, model, caller, self._on_call, self._known,
                    self._resources.control.stopping,
                )  # fmt: skip
            return self._embedders[of.embed]
