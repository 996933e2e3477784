"""Ordered parallel work for evaluators of one's own: joblib threads, and slots for calls.

    evo.parallel.map(len, ["a", "bb"])                          # [1, 2]
    evo.parallel.score_batch(score, programs, max_workers=8)    # fitness by program
    evo.parallel.score_batch(critic.score, triples)             # by a critic
    evo.parallel.generate_candidates(model, prompts, query)     # a reply, or None, by prompt
    evo.parallel.average(scores)                                # several scorers as one

`map_parallel`, `run_parallel`, `score_batch_parallel` and `generate_candidates_parallel` are the
same functions with `max_workers` as a positional argument.

Results come in the order of the items. Work goes on threads, which suits what waits for an
endpoint, a disk or another process. The function is called by several at once, so it must not
change what they share without a lock; with `max_workers=1` it is called in this thread, in order.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

from evo.parallel.interrupts import all_done
from evo.plugins import MistakenType

if TYPE_CHECKING:
    from evo.logs.records import Model
    from evo.models.client import Messages
    from evo.models.limits import Slots

__all__ = [
    "average",
    "generate_candidates",
    "generate_candidates_parallel",
    "map",
    "map_parallel",
    "run_parallel",
    "score_batch",
    "score_batch_parallel",
    "starmap",
]

MOST_WORKERS = 4  # by default; fewer if there are fewer items
Prompts = Sequence["str | Messages"]  # texts, or lists of messages

A = TypeVar("A")
B = TypeVar("B")


class How(TypedDict, total=False):
    """Further arguments of `map`, which the other functions pass on to it.

    Attributes:
        raising: Whether to raise the first exception, or to return exceptions in place of results.
        slots: Limits the number of calls in flight, shared with other work.
        cancel: An event; once it is set, no further item begins.
        progress: Whether to show a progress bar.
    """

    raising: bool
    slots: Slots | None
    cancel: threading.Event | None
    progress: bool


@overload
def map(  # noqa: A001
    function: Callable[[A], B],
    items: Iterable[A],
    *,
    max_workers: int | None = None,
    raising: Literal[True] = True,
    slots: Slots | None = None,
    cancel: threading.Event | None = None,
    progress: bool = False,
) -> list[B]: ...


@overload
def map(  # noqa: A001
    function: Callable[[A], B],
    items: Iterable[A],
    *,
    max_workers: int | None = None,
    raising: bool,
    slots: Slots | None = None,
    cancel: threading.Event | None = None,
    progress: bool = False,
) -> list[B | Exception]: ...


def map(  # noqa: A001 - it is the parallel twin of that function
    function: Callable[[A], B],
    items: Iterable[A],
    *,
    max_workers: int | None = None,
    raising: bool = True,
    slots: Slots | None = None,
    cancel: threading.Event | None = None,
    progress: bool = False,
) -> list[B] | list[B | Exception]:
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

    Example:
        >>> evo.parallel.map(float, ["1", "one"], raising=False)
        [1.0, ValueError("could not convert string to float: 'one'")]
    """
    work = list(items)
    workers = _workers(max_workers, len(work))
    ending = threading.Event()

    def one(place: int) -> B | Exception:
        if ending.is_set() or (cancel is not None and cancel.is_set()):
            return CancelledError(f"item {place} was cancelled before it began")
        try:
            with slots.slot((place,)) if slots else contextlib.nullcontext():
                return function(work[place])
        except Exception as error:  # a value in its item's place, raised below if wanted
            return error

    shown = progress and sys.stderr is not None and not sys.stderr.closed
    made: Iterable[B | Exception] = builtins.map(one, range(len(work)))
    results: list[B | Exception] = []
    try:
        if workers > 1:
            from joblib import Parallel, delayed

            threads = Parallel(workers, backend="threading", batch_size=1, return_as="generator")
            if shown:
                made = threads(delayed(one)(place) for place in range(len(work)))
            else:
                made = all_done(threads, one, range(len(work)))
        if shown:
            from tqdm.auto import tqdm

            made = tqdm(made, total=len(work), disable=None)  # unless the output is redirected
        results.extend(made)
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
    items: Iterable[Iterable[object]],
    *,
    max_workers: int | None = None,
    **how: Unpack[How],
) -> list[Any]:
    """Returns `function(*item)` for each item, in order; otherwise like `map`.

    Args:
        function: Called with the parts of one item, by several threads at once.
        items: The items, each a sequence of arguments.
        max_workers: Calls at a time (default: as many as there are items, at most 4).
        **how: Further arguments of `map`.

    Example:
        >>> evo.parallel.starmap(max, [(1, 2), (5, 3)])
        [2, 5]
    """
    return map(lambda item: function(*item), items, max_workers=max_workers, **how)


def score_batch(
    score: Callable[..., float],
    items: Iterable[object],
    max_workers: int | None = None,
    **how: Unpack[How],
) -> list[Any]:
    """Returns each item's score, a finite float, in order; otherwise as `map`.

    Args:
        score: Called with an item, such as `critic.score` with a (system prompt, query, reply)
            triple; one that takes several arguments is called with the parts of a tuple.
        items: What is scored.
        max_workers: Calls at a time, as for `map`.
        **how: As for `map`.

    Raises:
        ValueError: A score is no finite number; with `raising=False` such errors are values too.

    Example:
        >>> evo.parallel.score_batch(lambda a, b: a / b, [(1, 2), (3, 4)], max_workers=2)
        [0.5, 0.75]
    """

    def checked(item: object) -> float:
        parts = item if isinstance(item, tuple) and _takes_parts(score, item) else (item,)
        value = float(score(*parts))
        if not math.isfinite(value):
            raise ValueError(f"score: expected a finite number, got {value!r} for {item!r:.80}")
        return value

    return map(checked, items, max_workers=max_workers, **how)


def average(scores: Iterable[Callable[..., float]]) -> Callable[..., float]:
    """Returns a function that averages the scores of several functions.

    Args:
        scores: Functions of the same arguments, each of which returns a number.

    Returns:
        A function of these arguments.

    Raises:
        ValueError: `scores` is empty.

    Example:
        >>> length = evo.parallel.average([len, lambda text: 2 * len(text)])
        >>> length("ab")
        3.0
    """
    scorers = list(scores)
    if not scorers:
        raise ValueError("scores: expected at least one function, got none")

    def averaged(*parts: object) -> float:
        return math.fsum(scorer(*parts) for scorer in scorers) / len(scorers)

    return averaged


def map_parallel(
    fn: Callable[[A], B], items: Iterable[A], max_workers: int | None = None
) -> list[B]:
    """Returns `fn(item)` for each item, in order, computed by several threads.

    Args:
        fn: Called with one item.
        items: The items.
        max_workers: Calls at a time (default: as many as there are items, at most 4).

    Raises:
        ValueError: `max_workers` is below 1.
        Exception: The first one that `fn` raised, by the order of the items.

    Example:
        >>> evo.parallel.map_parallel(len, ["a", "bc"])
        [1, 2]
    """
    return map(fn, items, max_workers=max_workers)


def run_parallel(
    fn: Callable[..., B], items: Iterable[Iterable[object]], max_workers: int | None = None
) -> list[B]:
    """Returns `fn(*item)` for each item, in order, computed by several threads.

    Args:
        fn: Called with the parts of one item.
        items: The items, each a sequence of arguments.
        max_workers: Calls at a time (default: as many as there are items, at most 4).

    Raises:
        ValueError: `max_workers` is below 1.
        Exception: The first one that `fn` raised, by the order of the items.

    Example:
        >>> evo.parallel.run_parallel(pow, [(2, 3), (3, 2)])
        [8, 9]
    """
    return starmap(fn, items, max_workers=max_workers)


def score_batch_parallel(
    score_fn: Callable[..., float], items: Iterable[object], max_workers: int | None = None
) -> list[float]:
    """Returns the score of each (system prompt, query, reply) triple, in order; see `score_batch`.

    Args:
        score_fn: A function of the three parts, or of the triple, that returns a number.
        items: The triples.
        max_workers: Calls at a time (default: as many as there are items, at most 4).

    Example:
        >>> triples = [("Be brief.", "2 + 2?", "4"), ("Be brief.", "2 + 3?", "five")]
        >>> evo.parallel.score_batch_parallel(lambda prompt, query, reply: 1 / len(reply), triples)
        [1.0, 0.25]
    """
    return score_batch(score_fn, items, max_workers)


def generate_candidates_parallel(
    model: str | Model,
    system_prompts: Prompts,
    query: str,
    max_workers: int | None = None,
) -> list[str | None]:
    """Returns one reply to a query for each system prompt, in order; see `generate_candidates`.

    Args:
        model: Name of a model in the registry, or a Model.
        system_prompts: The system prompts.
        query: The query, sent with each of them.
        max_workers: Calls at a time (default: as many as there are prompts, at most 4).

    Returns:
        The replies; None where the model returned no text.

    Example:
        >>> prompts = ["Answer briefly.", "Think first."]
        >>> len(evo.parallel.generate_candidates_parallel("offline-2", prompts, "2 + 2?"))
        2
    """
    return generate_candidates(model, system_prompts, query, max_workers=max_workers)


def generate_candidates(
    model: str | Model | Prompts,
    prompts: Prompts | str | None = None,
    query: str | Sequence[str] | Callable[..., object] | None = None,
    *,
    seed: int = 0,
    max_workers: int | None = None,
    **how: Unpack[How],
) -> list[Any]:
    """Returns a model's reply to each prompt, in order; otherwise as `map`.

        generate_candidates("offline-2", prompts)            # a reply by prompt
        generate_candidates("offline-2", prompts, query)     # by system prompt, to one query
        generate_candidates("offline-2", prompts, queries)   # by system prompt a list, by query
        generate_candidates(prompts, queries)                # the same, of the offline model

    Args:
        model: Name in the registry, or a Model; with a function as `query` whatever that takes.
            Left out (the prompts come first): the offline model.
        prompts: Texts, or lists of messages; with queries as text they are system prompts.
        query: A text or several that each prompt is tried on; or a function `query(model, prompt)`
            that makes the call instead; None: the prompts are asked as they are.
        seed: Together with the places of prompt and query it makes the seed of a call.
        max_workers: Calls at a time, as for `map`.
        **how: As for `map`; a call holds its slot while a request is under way and gives it back
            while it backs off.

    Raises:
        EndpointError: The endpoint does not answer, or refuses the key or the model.

    Example:
        >>> briefly, aloud = ["Answer briefly."], ["Think aloud."]
        >>> replies = evo.parallel.generate_candidates("offline-2", briefly + aloud, "2 + 2?")
        >>> replies == evo.parallel.generate_candidates("offline-2", briefly + aloud, "2 + 2?")
        True
    """
    if callable(query):
        asked = [(model, prompt) for prompt in prompts or ()]
        return starmap(query, asked, max_workers=max_workers, **how)
    from evo.logs.records import Model
    from evo.models.client import ModelClient
    from evo.models.limits import Slots
    from evo.models.open_files import fitting
    from evo.models.registry import find_model, resolve_sampling

    if not (isinstance(model, str | Model) or callable(model)):
        if query is not None:
            raise MistakenType(f"generate_candidates: expected a model first, got {model!r:.80}")
        model, prompts, query = "offline-2", model, prompts
    if prompts is None or isinstance(prompts, str):
        raise MistakenType(f"prompts: expected a list, got {prompts!r:.80}")
    known = find_model(model)
    queries = [query] if query is None or isinstance(query, str) else list(query)
    conversations = [_conversation(prompt, asked) for prompt in prompts for asked in queries]
    slots = how.pop("slots", None) or Slots(fitting(_workers(max_workers, len(conversations))))
    client = ModelClient(known, resolve_sampling(known), slots=slots)

    def ask(place: int, messages: Messages) -> str | None:
        key = hashlib.sha256(f"{seed}/{place}".encode()).digest()
        return client.call(messages, seed=int.from_bytes(key[:4], "big") >> 1, index=place).reply

    with contextlib.closing(client):
        replies = starmap(ask, enumerate(conversations), max_workers=max_workers, **how)
    if query is None or isinstance(query, str):
        return replies
    width = len(queries)
    return [replies[k * width : (k + 1) * width] for k in range(len(prompts))]


def _conversation(prompt: str | Messages, query: str | None) -> Messages:
    """Returns the messages of one call; a prompt that is asked a query is the system's."""
    role = "user" if query is None else "system"
    messages = [{"role": role, "content": prompt}] if isinstance(prompt, str) else [*prompt]
    return messages if query is None else [*messages, {"role": "user", "content": query}]


def _takes_parts(function: Callable[..., object], item: tuple[object, ...]) -> bool:
    """Whether a function cannot be called with an item, but with the parts of it."""

    def takes(*arguments: object) -> bool:
        with contextlib.suppress(TypeError, ValueError):  # some built-in functions do not say
            return inspect.signature(function).bind(*arguments) is not None
        return False

    return takes(*item) and not takes(item)


def _workers(wanted: int | None, count: int) -> int:
    if wanted is not None and wanted < 1:
        raise ValueError(f"max_workers: expected at least 1, or None, got {wanted!r}")
    return max(1, min(count, MOST_WORKERS if wanted is None else wanted))
