"""A search whose loop is the user's: it asks for replies, and is told them in any order.

It is `evo.run` with hands in place of the model: the calls that the loop asks for, see
`evo.runs.loop`, come out, and a reply that is told goes on as if an endpoint had given it. So its
log is an ordinary log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, Unpack

from evo.logs.best import Best
from evo.logs.inputs import at_least
from evo.logs.log import Log, read_log
from evo.logs.records import Child, Evaluation, Model, Sampling
from evo.logs.types import absolute_paths
from evo.models.client import Call, CallCancelled, Messages
from evo.plugins import MistakenType
from evo.runs import items
from evo.runs.handle import begin, read_begun
from evo.runs.holders import take_over
from evo.runs.options import RunOptions
from evo.runs.own_programs import as_reply
from evo.runs.own_results import call_of, evaluation_of
from evo.runs.signatures import lists_options
from evo.runs.state import State
from evo.runs.verbs import prepare_run
from evo.searches.base import Place
from evo.tasks.task import Task, load_task
from evo.warning import warn

BY_HAND = Model(name="by hand")
"""The model of a search whose replies are told, unless another one is named."""


@dataclass(frozen=True)
class Asked:
    """What a reply is wanted for.

    Attributes:
        messages: What would be sent to a model.
        place: Generation and index of the child.
        parents: The programs that it rewrites, by place.
        seed: The seed of the reply, below 2**31.
        sampling: How a model would sample.
        model: Its name.
        draft: Which of a child's drafts it is, from 0.
        advice: Whether advice on the search is wanted, with `advice=` of the options, and no child;
            the index in its place is then N.

    Example:
        >>> searcher = evo.Searcher("mmd", children=2, generations=1, log=new(), progress=False)
        >>> [asked, other] = searcher.ask()
        >>> asked.place, asked.parents
        ((1, 0), ((0, 0),))
    """

    messages: Messages
    place: Place
    parents: tuple[Place, ...]
    seed: int
    sampling: Sampling
    model: str
    draft: int = 0
    advice: bool = False


@dataclass(frozen=True)
class _Open:
    """A call that is to be made.

    Attributes:
        asked: What is handed out for it.
        prompt: What the run asks.
        take: Is called with what came of it.
    """

    asked: Asked
    prompt: items.Prompt
    take: Callable[..., None]


class Hand:
    """Holds the calls that a run wants made, for those who tell what came of them.

    Attributes:
        changed: Is held around all else, and notified of it.
        children: How many of them make a generation.
        calls: What is to be made, by seed, until it is told.
        handed: The seeds of those that were handed out.
        evaluations: Those of children that are done.
        ended: Whether the search is over.
    """

    def __init__(self) -> None:
        self.changed, self.children = threading.Condition(), 1
        self.calls = dict[int, _Open]()
        self.handed = set[int]()
        self.evaluations = dict[Place, Evaluation]()
        self.ended = self._cancelled = False

    @property
    def asked(self) -> list[Asked]:
        """What is to be told, in order."""
        return [call.asked for call in self.calls.values()]

    def open(self, call: items.CallItem, state: State, take: Callable[..., None]) -> None:
        """Takes a call that is to be made, and what is to be called with its result."""
        if self._cancelled:
            take(CallCancelled("the search was closed"))
            return
        prompt, header = call.prompt, call.header
        asked = Asked(
            messages=prompt.messages, place=prompt.place,
            parents=prompt.planned.parents or (state.best.place,), seed=call.seed,
            sampling=header.sampling, model=header.model.name, draft=call.draft,
            advice=prompt.advice,
        )  # fmt: skip
        self.calls[call.seed] = _Open(asked, prompt, take)
        self.changed.notify_all()

    def tell(self, seed: int, call: Call, evaluation: Evaluation | None) -> None:
        """Takes what came of a call."""
        self.handed.add(seed)
        self.calls.pop(seed).take(call, evaluation)
        self.changed.notify_all()

    def learn(self, children: Sequence[Child]) -> None:
        """Takes children that are done."""
        for child in children:
            generation, index, _ = child.reply_key(self.children)
            self.evaluations[generation, index] = child.evaluation
        self.changed.notify_all()

    def cancel(self) -> None:
        """Ends all calls that wait."""
        with self.changed:
            self._cancelled = True
            while self.calls:
                self.calls.popitem()[1].take(CallCancelled("the search was closed"))
            self.changed.notify_all()

    def end(self) -> None:
        """Notes that the search is over."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()


class Searcher:
    """A search that is asked and told: the calls are made by whoever uses it.

        with evo.Searcher(task, children=4, generations=8, log="run.jsonl") as searcher:
            while not searcher.done:
                for prompt in searcher.ask():
                    searcher.tell(prompt, my_model(prompt.messages))
        print(searcher.best.fitness)

    Prompts may be told in any order and from any thread. What was told is in the log at once, so a
    search that was closed or killed goes on where it was when it is opened again. A critic's calls,
    and those of a task whose evaluation asks a model, are made here. With `advice=` some prompts
    ask for advice on the search; the reply to them is told as any other.

    Args:
        task: Name, alias, folder or Task.
        log: Path of the log, as for `evo.run`.
        resume: Whether a log of the same configuration goes on, as for `evo.run`.
        budget: Limits by unit, as for `evo.run`.
        **options: Those of `evo.run`.

    Raises:
        ValueError: A mistake in the arguments; the task asks a model, and none is named.
        LogBusyError: Another process writes the log.

    Example:
        >>> searcher = evo.Searcher("mmd", children=2, generations=1, log=new(), progress=False)
        >>> prompts = searcher.ask()
        >>> for prompt in prompts:
        ...     evaluation = searcher.tell(prompt, "no program")
        >>> evaluation.status
        'no_program'
    """

    @lists_options(RunOptions)
    def __init__(
        self,
        task: str | os.PathLike[str] | Task,
        *,
        log: str | os.PathLike[str] | None = None,
        resume: bool = True,
        budget: Mapping[str, float] | None = None,
        **options: Unpack[RunOptions],
    ) -> None:
        loaded = load_task(task)
        if "model" not in options and "models" not in options:
            if loaded.record.asks_model and loaded.asks is None:
                raise ValueError(
                    f"{loaded.name}: its evaluation asks a model on each instance, and these calls "
                    "are made by the search: name it, model=... or evo.task(..., asks=...)"
                )
            options["model"] = BY_HAND
        if options.get("batches"):
            raise ValueError("batches: a generation that is tried in batches has no single tells")
        if "settings" not in options:
            options.setdefault("progress", False)
            if options.get("max_concurrent") == 1:
                del options["max_concurrent"]
        self._hand = Hand()
        with absolute_paths():
            prepared = prepare_run(
                loaded, log=log, resume=resume, budget=budget, hand=self._hand, **options
            )
        (self._header, _), (self.path,) = prepared.runs[0], prepared.paths
        self._hand.children = self._header.children
        if take_over(prepared.paths):
            warn(
                f"{self.path}: another search of this process had it open; that one is "
                "closed, and this one goes on with it",
            )
        before = read_begun(self.path)
        self._earlier = set[Place]() if before is None else _under_way(before)
        work = self._noting_the_end(prepared.work)
        self._handle = begin(replace(prepared, work=work), alone=False)

    def _noting_the_end(self, work: Callable[..., Log]) -> Callable[..., Log]:
        def wrapped(control: object) -> Log:
            try:
                return work(control)
            finally:
                self._hand.end()

        return wrapped

    def ask(self, n: int | None = None) -> list[Asked]:
        """Returns prompts that a reply is wanted for and that were not handed out before.

        These are all that can be planned now. The list is empty, at once, while prompts that were
        handed out are not told and no further one can be planned before that: ask again after a
        `tell`, rather than in a loop that does nothing else. Once all are told and their programs
        are being evaluated, `ask` waits until it can say what comes next. At the end of the search
        the list is empty and `done` is true.

        With a barrier between generations, the default, the prompts of the next one come after
        the last `tell` of this one; with `asynchronous=True` one comes after each.

        Args:
            n: How many at most.

        Raises:
            ValueError: The search was closed, or another one took its log over, before its end.

        Example:
            >>> searcher = evo.Searcher("mmd", children=2, generations=1, log=new(), progress=False)
            >>> first, second = searcher.ask()
            >>> searcher.ask(), searcher.done  # both are out, and the search goes on
            ([], False)
            >>> _ = searcher.tell(first, None), searcher.tell(second, None)
            >>> searcher.ask(), searcher.done
            ([], True)
        """
        most = None if n is None else at_least("n", n, 1)
        hand = self._hand
        with hand.changed:
            self._settle()
            fresh = [each for each in hand.asked if each.seed not in hand.handed][:most]
            hand.handed |= {each.seed for each in fresh}
        self._raise()
        if not fresh:
            self._check_open("ask")
        return fresh

    @property
    def waiting(self) -> list[Asked]:
        """The prompts that were asked and are not told.

        After a search was opened again these are all that are open of the generation under way;
        `ask` hands them out once more.
        """
        hand = self._hand
        with hand.changed:
            self._settle()
            return [
                each
                for each in hand.asked
                if each.seed in hand.handed or each.place in self._earlier
            ]

    def tell(
        self,
        prompt: Asked | None,
        reply: Any = None,
        *,
        program: str | None = None,
        evaluation: Any = None,
    ) -> Evaluation | None:
        """Takes a reply and returns the evaluation of its program, once that is in the log.

        Args:
            prompt: One that was asked and not told; None: a new one, for a program of your own.
            reply: The model's text, or an object with `text`, `usage`, `reasoning` and
                `finish_reason`; None: there is none.
            program: Fills the prompt's place without a call.
            evaluation: The result for the program that is given in `reply` or `program`, if it was
                evaluated elsewhere, in a laboratory or on a cluster: a number, a dict with
                `fitness`, (number, notes), or an Evaluation, whose status may be a failure.

        Returns:
            The evaluation; None while other drafts of the child are out, and of advice.

        Raises:
            ValueError: The prompt was told already or never asked for; an evaluation came without
                its program; or the search was closed, or another one took its log over.
        """
        if not isinstance(prompt, Asked | None):
            raise MistakenType(f"prompt: expected one that ask() returned, got {prompt!r:.80}")
        if prompt is None:
            if program is None:
                raise ValueError("prompt: expected one that was asked, got None without program=")
            return self._tell_fresh(reply, program, evaluation)
        self._check_answer(prompt, reply, program, evaluation)
        found = None if evaluation is None else evaluation_of(evaluation)
        hand, place = self._hand, prompt.place
        with hand.changed:
            if prompt.seed not in hand.calls:
                self._raise()
                self._check_open("tell")
                child = f"that of generation {place[0]}, child {place[1]}, draft {prompt.draft}"
                which = f"advice before generation {place[0]}" if prompt.advice else child
                raise ValueError(f"prompt: {which} was told already, or was never asked")
            call = self._call_of(prompt, reply, program)
            hand.tell(prompt.seed, call, found)
            if prompt.advice or any(each.place == place for each in hand.asked):
                return None
            hand.changed.wait_for(lambda: place in hand.evaluations or hand.ended)
        if place not in hand.evaluations:
            self._raise()
            self._check_open("tell")
        return hand.evaluations.get(place)

    def _check_answer(
        self, prompt: Asked, reply: Any, program: str | None, evaluation: Any
    ) -> None:
        """Raises where a reply, a program and an evaluation cannot all be told of one prompt."""
        if not isinstance(program, str | None):
            raise MistakenType(f"program: expected source text, got {program!r:.80}")
        if program is not None and reply is not None:
            raise ValueError("program: it stands in place of a reply; give one of them")
        if evaluation is not None and (self._header.draws > 1 or self._header.confirm):
            raise ValueError("evaluation: with draws or confirm, evaluations are made here")
        if evaluation is not None and program is None and reply is None:
            raise ValueError(
                "evaluation: expected the program that it is of beside it, as reply= or program=, "
                "got neither"
            )
        if prompt.advice and (program, evaluation) != (None, None):
            raise ValueError("prompt: it asks for advice, which is a reply and no program")

    def _tell_fresh(self, reply: Any, program: str, evaluation: Any) -> Evaluation | None:
        """Tells of a program in a new place, which is handed out later if that is a mistake."""
        prompt = self._fresh()
        try:
            return self.tell(prompt, reply, program=program, evaluation=evaluation)
        except Exception:
            self._hand.handed.discard(prompt.seed)
            raise

    def _fresh(self) -> Asked:
        """Returns a prompt of a child that was not handed out before; ValueError: there is none."""
        fresh = self.ask(1)
        if not fresh:
            raise ValueError("prompt: none can be planned now; tell those that are out first")
        if fresh[0].advice:
            self._hand.handed.discard(fresh[0].seed)  # `ask` hands it out
            raise ValueError(
                "prompt: no child can be planned before the advice: ask() gives its prompt, tell it"
            )
        return fresh[0]

    def _call_of(self, prompt: Asked, reply: Any, program: str | None) -> Call:
        if program is not None:
            return Call((), as_reply(program, self._hand.calls[prompt.seed].prompt, self._header))
        return call_of(reply)

    @property
    def done(self) -> bool:
        """Whether the search is over: its goal or budget is reached, or it was closed.

        While all prompts are told and their programs are being evaluated, it waits, as `ask` does.
        """
        with self._hand.changed:
            self._settle()
            ended = self._hand.ended
        if ended:
            self._raise()
        return ended

    @property
    def log(self) -> Log:
        """The log as it reads now."""
        return read_log(self.path)

    @property
    def best(self) -> Best:
        """The best program so far."""
        return self.log.best

    def close(self) -> None:
        """Closes the log; what was told is in it, and the search can be opened again."""
        self._handle.pause()
        with self._hand.changed:
            self._hand.changed.wait_for(lambda: self._hand.ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Searcher {self.path}: {len(self._hand.calls)} prompts open>"

    def _settle(self) -> None:
        """Waits, with the condition held, until a prompt is open or the search is over."""
        self._hand.changed.wait_for(lambda: bool(self._hand.calls) or self._hand.ended)

    def _raise(self) -> None:
        """Raises what ended the search, if that was an error."""
        if self._hand.ended:
            self._handle.wait(60)

    def _check_open(self, verb: str) -> None:
        """Raises ValueError if the search was ended from outside, before its goal or budget."""
        if not self._hand.ended or self._handle.wait(60).ends[-1].reason != "interrupted":
            return
        how = "was closed"
        if self._handle.taken_over:
            how = "was closed, since another search or run of this process took its log over"
        raise ValueError(
            f"{verb}: this search {how}; evo.Searcher(..., log={str(self.path)!r}) with "
            "the same arguments goes on where the log is"
        )


def _under_way(log: Log) -> set[Place]:
    """Returns the children that an earlier search may have asked for, and that are not complete."""
    width, number = log.header.children, len(log.generations) + 1
    if not log.header.asynchronous:
        return {(number, index) for index in range(width + 1)}  # the last one asks for advice
    complete = {child.request for child in log.outcomes}
    return {(1 + k // width, k % width) for k in log.requests if k not in complete}
