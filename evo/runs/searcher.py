"""A search whose loop is the user's: it asks for replies, and is told them in any order.

It is `evo.run` with hands in place of the model: prompts come out where a call would be made, and a
reply that is told goes on as if an endpoint had given it. So its log is an ordinary log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from evo.logs.log import Best, Log, read_log
from evo.logs.records import Attempt, Child, Evaluation, Header, Model, Sampling
from evo.models.client import Call, CallCancelled, Caller, Messages
from evo.plugins import MistakenType
from evo.prompt import parse_reply
from evo.runs.ask import child_seed
from evo.runs.handle import begin
from evo.runs.holders import take_over
from evo.runs.options import RunOptions, lists_options
from evo.runs.planning import Prompt
from evo.runs.state import State
from evo.runs.verbs import prepare_run
from evo.sandbox.scores import read_score
from evo.searches.base import Place
from evo.tasks.task import Task, load_task

if TYPE_CHECKING:
    from evo.runs.loop import Steps

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
    """

    messages: Messages
    place: Place
    parents: tuple[Place, ...]
    seed: int
    sampling: Sampling
    model: str
    draft: int = 0


class Hand:
    """Stands between a run, which waits for replies, and those who tell them."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.open: dict[int, Asked] = {}  # by seed, until it is told
        self.programs: dict[int, str] = {}  # what each rewrites
        self.handed: set[int] = set()
        self.results: dict[Place, Evaluation] = {}
        self.given: dict[Place, Evaluation] = {}
        self.first: int | None = None  # the generation that was under way at the beginning
        self.ended = False
        self._calls: dict[int, Call] = {}
        self._cancelled = False
        self._here = threading.local()

    def caller(self, header: Header) -> Caller:
        """Returns what answers the calls of a header."""
        return _Answers(self, header.model, header.sampling)

    def answer(self, seed: int) -> Call:
        """Waits for what is told of a prompt."""
        with self.changed:
            self.changed.wait_for(lambda: seed in self._calls or self._cancelled)
            if seed not in self._calls:
                raise CallCancelled("the search was closed")
            return self._calls[seed]

    def take(self, asked: Asked, call: Call) -> None:
        """Takes a reply; the condition is held."""
        self._calls[asked.seed] = call
        del self.open[asked.seed]
        self.changed.notify_all()

    def cancel(self) -> None:
        """Ends all that wait for a reply."""
        with self.changed:
            self._cancelled = True
            self.changed.notify_all()

    def learn(self, child: Child) -> None:
        """Takes a child that is logged."""
        with self.changed:
            self.results[child.generation, child.index] = child.evaluation
            self.changed.notify_all()

    def around(self, steps: Steps, header: Header) -> Steps:
        """Returns the steps of a generation, of which this sees what is planned and evaluated."""

        def plan(state: State) -> list[Prompt]:
            prompts = steps.plan(state)
            self._publish(prompts, state, header)
            return prompts

        def ask(prompt: Prompt, state: State) -> Call:
            self._here.place = prompt.place
            return steps.ask(prompt, state)

        def evaluate(program: str, state: State) -> Evaluation:
            place = getattr(self._here, "place", None)
            found = self.given.get(place) if place is not None else None
            found = steps.evaluate(program, state) if found is None else found
            if found.status == "no_reply" and place is not None:  # such a child is not logged
                with self.changed:
                    self.results[place] = found
                    self.changed.notify_all()
            return found

        return replace(steps, plan=plan, ask=ask, evaluate=evaluate)

    def _publish(self, prompts: Sequence[Prompt], state: State, header: Header) -> None:
        with self.changed:
            if self.first is None:
                self.first = state.generation + 1
            for prompt in prompts:
                generation, index = prompt.place
                if index in state.children:
                    continue
                under = header.asking(prompt.planned.model)
                for draft in range(header.drafts):
                    seed = child_seed(header.seed, header.children, generation, index, draft)
                    if (generation, index, draft) in state.replies or seed in self._calls:
                        continue
                    self.programs[seed] = prompt.program
                    self.open[seed] = Asked(
                        messages=prompt.messages, place=prompt.place,
                        parents=prompt.planned.parents or (state.best.place,), seed=seed,
                        sampling=under.sampling, model=under.model.name, draft=draft,
                    )  # fmt: skip
            self.changed.notify_all()


@dataclass
class _Answers:
    """The hand as a client of one model."""

    hand: Hand
    model: Model
    sampling: Sampling

    def call(self, messages: Messages, *, seed: int, generation: int, index: int) -> Call:
        return self.hand.answer(seed)

    def cancel(self) -> None:
        self.hand.cancel()

    def close(self) -> None:
        pass


class Searcher:
    """A search that is asked and told: the calls are made by whoever uses it.

        with evo.Searcher(task, children=4, generations=8, log="run.jsonl") as searcher:
            while not searcher.done:
                for prompt in searcher.ask():
                    searcher.tell(prompt, my_model(prompt.messages))
        print(searcher.best.fitness)

    Prompts may be told in any order and from any thread. What was told is in the log at once, so a
    search that was closed or killed goes on where it was when it is opened again. A critic's calls,
    and those of a task whose evaluation asks a model, are made here.

    Args:
        task: Name, alias, folder or Task.
        log: Path of the log, as for `evo.run`.
        resume: Whether a log of the same configuration goes on, as for `evo.run`.
        budget: Limits by unit, as for `evo.run`.
        **options: Those of `evo.run`.

    Raises:
        ValueError: A mistake in the arguments; the task asks a model, and none is named.
        LogBusyError: Another process writes the log.
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
        prepared = prepare_run(
            loaded, log=log, resume=resume, budget=budget, hand=self._hand, **options
        )
        (self._header, _), (self.path,) = prepared.runs[0], prepared.paths
        take_over(prepared.paths)
        self._reopened = self.path.exists()
        self._handle = begin(replace(prepared, work=self._noting_the_end(prepared.work)))

    def _noting_the_end(self, work: Callable[..., Log]) -> Callable[..., Log]:
        def wrapped(control: object) -> Log:
            try:
                return work(control)
            finally:
                with self._hand.changed:
                    self._hand.ended = True
                    self._hand.changed.notify_all()

        return wrapped

    def ask(self, n: int | None = None) -> list[Asked]:
        """Returns prompts that a reply is wanted for and that were not handed out before.

        These are all that can be planned now. While prompts are out and no further one can be
        planned, there are none; at the end of the search neither.

        Args:
            n: How many at most.
        """
        if n is not None and n < 1:
            raise ValueError(f"n: expected at least 1 or None, got {n!r}")
        hand = self._hand
        with hand.changed:
            self._settle()
            fresh = [each for seed, each in hand.open.items() if seed not in hand.handed][:n]
            hand.handed |= {each.seed for each in fresh}
        self._raise()
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
            earlier = hand.first if self._reopened else None
            return [
                each
                for seed, each in hand.open.items()
                if seed in hand.handed or each.place[0] == earlier
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
            evaluation: One that was made elsewhere, in a laboratory or on a cluster: a number, a
                dict with `fitness`, (number, notes), or an Evaluation.

        Returns:
            The evaluation; None while other drafts of the child are out.

        Raises:
            ValueError: It was told already, or was not asked.
        """
        if prompt is None:
            if program is None:
                raise ValueError("prompt: expected one that was asked, got None without program=")
            fresh = self.ask(1)
            if not fresh:
                raise ValueError("prompt: none can be planned now; tell those that are out first")
            prompt = fresh[0]
        if program is not None and reply is not None:
            raise ValueError("program: it stands in place of a reply; give one of them")
        if evaluation is not None and (self._header.draws > 1 or self._header.confirm):
            raise ValueError("evaluation: with draws or confirm, evaluations are made here")
        found = None if evaluation is None else _evaluation_of(evaluation)
        hand, place = self._hand, prompt.place
        with hand.changed:
            if prompt.seed not in hand.open:
                self._raise()
                raise ValueError(
                    f"prompt: that of generation {place[0]}, child {place[1]}, draft "
                    f"{prompt.draft} was told already, or was never asked"
                )
            call = self._call_of(prompt, reply, program)
            if found is not None:
                hand.given[place] = found
            hand.handed.add(prompt.seed)
            hand.take(prompt, call)
            if any(each.place == place for each in hand.open.values()):
                return None
            hand.changed.wait_for(lambda: place in hand.results or hand.ended)
        if place not in hand.results:
            self._raise()
        return hand.results.get(place)

    def _call_of(self, prompt: Asked, reply: Any, program: str | None) -> Call:
        if program is not None:
            return Call((), _as_reply(program, self._hand.programs[prompt.seed], self._header))
        if reply is None:
            words = "it was told that there is no reply"
            return Call((Attempt(status="error", latency=None, error=words),))
        if isinstance(reply, str):
            return Call((Attempt(status="ok", latency=None),), reply)
        if not isinstance(text := getattr(reply, "text", reply), str | None):
            raise MistakenType(f"reply: expected a text, evo.Reply or None, got {reply!r:.80}")
        if text is None:
            return self._call_of(prompt, None, None)
        reason = getattr(reply, "finish_reason", None)
        usage, thoughts = getattr(reply, "usage", None), getattr(reply, "reasoning", None)
        attempt = Attempt(status="ok", latency=None, usage=usage, finish_reason=reason)
        return Call((attempt,), text, thoughts, reason)

    @property
    def done(self) -> bool:
        """Whether the search is over: its goal or budget is reached, or it was closed."""
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
        return f"<Searcher {self.path}: {len(self._hand.open)} prompts open>"

    def _settle(self) -> None:
        """Waits, with the condition held, until a prompt is open or the search is over."""
        self._hand.changed.wait_for(lambda: bool(self._hand.open) or self._hand.ended)

    def _raise(self) -> None:
        """Raises what ended the search, if that was an error."""
        if self._hand.ended:
            self._handle.wait(60)


def _as_reply(program: str, parent: str, header: Header) -> str:
    """Returns a reply in which a program is found."""
    if header.edits == "diff":
        return f"<<<<<<< SEARCH\n{parent.rstrip()}\n=======\n{program.rstrip()}\n>>>>>>> REPLACE\n"
    evolves = header.task.evolves
    for fence in ("```", "````", "~~~~~"):
        reply = f"{fence}{'python' if evolves == 'python' else ''}\n{program.rstrip()}\n{fence}\n"
        if parse_reply(reply, evolves=evolves) == program.rstrip() + "\n":
            return reply
    raise ValueError("program: expected a program or text that is not empty")


def _evaluation_of(given: Any) -> Evaluation:
    if isinstance(given, Evaluation):
        return given
    fitness, metrics, notes = read_score(given, "evaluation=")
    return Evaluation(status="ok", fitness=fitness, metrics=metrics, notes=notes, seconds=None)
