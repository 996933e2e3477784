"""Ordered parallel work for evaluators of one's own: joblib threads, and slots for calls.

    evo.parallel.map(len, ["a", "bb"])                          # [1, 2]
    evo.parallel.score_batch(score, programs, max_workers=8)    # fitness by program
    evo.parallel.generate_candidates("offline", prompts)        # a reply, or None, by prompt

Results come in the order of the items. Work goes on threads, which suits what waits for an
endpoint, a disk or another process; what computes in Python should go to the sandbox or to joblib
itself. The function is called by several threads at once, so it must not change what they share
without a lock; with `max_workers=1` it is called in this thread, in order, with the same results.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

if TYPE_CHECKING:
    from evo.llm.client import Messages
    from evo.llm.limits import Slots
    from evo.records import Model

MOST_WORKERS = 4
"""Workers unless told otherwise; fewer where there are fewer items."""

A = TypeVar("A")
B = TypeVar("B")


class How(TypedDict, total=False):
    """Further arguments of `map`, which the others pass on to it."""

    raising: bool
    slots: Slots | None
    cancel: threading.Event | None
    progress: bool


def map(  # noqa: A001 - it is the parallel twin of that function
    function: Callable[[A], B],
    items: Iterable[A],
    *,
    max_workers: int | None = None,
    raising: bool = True,
    slots: Slots | None = None,
    cancel: threading.Event | None = None,
    progress: bool = False,
) -> list[Any]:
    """Returns what a function makes of each item, in order.

    Args:
        function: Called with one item, by several threads at once.
        items: What to work on.
        max_workers: Calls at a time; None: as many as items, 4 at most; 1: in this thread.
        raising: Raise the first exception, by item, once all items are done; False: an exception
            stands in the result in its item's place.
        slots: Asked for a slot for each item, so that work keeps to a limit it shares.
        cancel: Once set, no further item begins; those left are `CancelledError`. Ctrl-C does
            the same and is then raised; what is under way is left to finish.
        progress: Show a progress bar.

    Raises:
        ValueError: `max_workers` is below 1.
        Exception: Of an item, unless `raising` is False.
    """
    work = list(items)
    workers = _workers(max_workers, len(work))
    ending = threading.Event()

    def one(place: int) -> Any:
        if ending.is_set() or (cancel is not None and cancel.is_set()):
            return CancelledError(f"item {place} was cancelled before it began")
        try:
            with slots.slot((place,)) if slots else contextlib.nullcontext():
                return function(work[place])
        except Exception as error:  # a value in its item's place, raised below if wanted
            return error

    results: list[Any] = []
    try:
        results.extend(_shown(_run(one, len(work), workers), len(work), shown=progress))
    finally:  # after an interrupt nothing further begins
        ending.set()
    failed = [result for result in results if isinstance(result, Exception)]
    if raising and failed:
        if len(failed) > 1:
            failed[0].add_note(f"{len(failed)} of {len(work)} items failed; this is the first")
        raise failed[0]
    return results


def starmap(
    function: Callable[..., B],
    items: Iterable[Iterable[Any]],
    *,
    max_workers: int | None = None,
    **how: Unpack[How],
) -> list[Any]:
    """Returns what a function makes of each item's parts, in order; otherwise as `map`."""
    return map(lambda item: function(*item), items, max_workers=max_workers, **how)


def score_batch(
    score: Callable[[A], float],
    items: Iterable[A],
    max_workers: int | None = None,
    **how: Unpack[How],
) -> list[Any]:
    """Returns each item's score, a finite float, in order; otherwise as `map`.

    Raises:
        ValueError: A score is no finite number; with `raising=False` such errors are values too.
    """

    def checked(item: A) -> float:
        value = float(score(item))
        if not math.isfinite(value):
            raise ValueError(f"score: expected a finite number, got {value!r} for {item!r:.80}")
        return value

    return map(checked, items, max_workers=max_workers, **how)


def generate_candidates(
    model: str | Model,
    prompts: Sequence[str | Messages],
    query: Callable[[Any, Any], Any] | None = None,
    *,
    seed: int = 0,
    max_workers: int | None = None,
    **how: Unpack[How],
) -> list[Any]:
    """Returns a model's reply to each prompt, in order; otherwise as `map`.

    Args:
        model: Name in the registry, or a Model; with a `query` of one's own whatever that takes.
        prompts: Texts, or lists of messages.
        query: `query(model, prompt) -> reply`; None: one call of the model, None for no reply.
        seed: Together with a prompt's place it makes the seed of its call.
        max_workers: Calls at a time, as for `map`.
        **how: As for `map`; without a query, a call holds its slot while a request is under way
            and gives it back while it backs off.

    Raises:
        EndpointError: The endpoint does not answer, or refuses the key or the model.
    """
    if query is not None:
        asked = [(model, prompt) for prompt in prompts]
        return starmap(query, asked, max_workers=max_workers, **how)
    from evo.llm.client import ModelClient
    from evo.llm.limits import Slots
    from evo.llm.registry import find_model, resolve_sampling

    known = find_model(model)
    slots = how.pop("slots", None) or Slots(_workers(max_workers, len(prompts)))
    client = ModelClient(known, resolve_sampling(known), slots=slots)

    def ask(place: int, prompt: str | Messages) -> str | None:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        key = hashlib.sha256(f"{seed}/{place}".encode()).digest()
        call = client.call(messages, seed=int.from_bytes(key[:4], "big") >> 1, index=place)
        return call.reply

    with contextlib.closing(client):
        return starmap(ask, enumerate(prompts), max_workers=max_workers, **how)


def _workers(wanted: int | None, count: int) -> int:
    if wanted is None:
        return max(1, min(count, MOST_WORKERS))
    if wanted < 1:
        raise ValueError(f"max_workers: expected at least 1, or None, got {wanted!r}")
    return wanted


def _run(one: Callable[[int], B], count: int, workers: int) -> Iterable[B]:
    """Yields `one(0)`, `one(1)`, ... in order, made by so many threads."""
    if workers == 1 or count <= 1:
        return (one(place) for place in range(count))
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=min(workers, count), backend="threading", batch_size=1, return_as="generator"
    )
    made: Iterable[B] = parallel(delayed(one)(place) for place in range(count))
    return made


def _shown(results: Iterable[B], total: int, *, shown: bool) -> Iterable[B]:
    if not shown:
        return results
    from tqdm.auto import tqdm

    return tqdm(results, total=total)
