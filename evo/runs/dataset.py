"""Tasks with a data set: a program or a text is tried on every instance, and scored on each.

task.toml names the data set, `instances = "instances.jsonl"`: one JSON object a line. The evaluator
defines `score(value, instance)`, which returns a number in [0, 1] or raises ValueError for a value
that is not legal; the fitness is the mean over all instances, one without a score counting as 0.

- A text is the system message and the instance's `prompt` the user message of a call to the run's
  model; `value` is the reply. The seed of the call is keyed by the text and the instance alone, so
  an evaluation is a function of task, text and model, and equal texts are evaluated once.
- A program's entry function is called with the instance's `input`, on all instances in one process
  under the limits of one evaluation; `value` is what it returns. It never sees the instance's
  other fields. A harness, a file of the task, is run after the program and may define the entry.
- Instances with `"check": true` are held out: they count in no fitness. A program's mean on them is
  the private metric `check_fitness`; a text is asked them in one test at the end, see `batches`.
- With `batches`, the texts of a generation are tried on growing batches of instances in
  lockstep, with luck keyed by run and generation; one that cannot catch up is dropped, `partial`.
- `score = "critic"` in task.toml has a critic score the replies, by its `rubric`; there is no
  evaluator then.

Values are scored in the sandbox, all instances at once, by the task's evaluator with a few lines
added (see `scoring`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import NamedTuple, TypeVar

import msgspec

from evo import parallel
from evo.logs.cost import added
from evo.logs.records import (
    CriticCall,
    Evaluation,
    Header,
    Instance,
    InstanceCall,
    Limits,
    TaskRecord,
)
from evo.logs.types import JsonObject
from evo.models.client import CallCancelled, EndpointError, was_sent
from evo.models.critics import Known, Scorer, Triple, known_of
from evo.prompt import last_line
from evo.runs.batches import batch_order, batch_sizes, certify, dropped
from evo.runs.here import Here, scores_here, value_of
from evo.runs.resources import Resources
from evo.runs.scoring import is_strict, program_source, scoring_task
from evo.tasks.instances import read_instances
from evo.warning import warn

A = TypeVar("A")
B = TypeVar("B")


def text_key(text: str) -> str:
    """Returns what a log calls a text: 16 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def instance_seed(key: str, index: int) -> int:
    """Returns the seed, in [0, 2**31), of the call for a text and the instance at `index`."""
    return int.from_bytes(hashlib.sha256(f"{key}/{index}".encode()).digest()[:4], "big") >> 1


class TriedInstance(NamedTuple):
    """Result of a text on one instance, with the calls of the model and of the critic."""

    instance: Instance
    calls: tuple[InstanceCall, ...]


class InstanceEvaluator:
    """Evaluates programs or texts on a task's data set; many threads may share it.

    A call is passed to `on_call` in the thread that made it, and waits for a slot behind the calls
    of the generation's own children. A call that is `known` is not made again; each new one that
    gets a reply is added to those.

    Attributes:
        generation: The generation under which calls are logged.
        check: The positions of the instances that no search sees.
    """

    def __init__(
        self,
        header: Header,
        resources: Resources,
        on_call: Callable[[InstanceCall], None] = lambda _: None,
        known: Known | None = None,
    ) -> None:
        self.generation, self._known = 0, {} if known is None else known
        self._header, self._sandbox = header, resources.evaluator.evaluate
        asked = header.asks or header
        self._caller = resources.caller(asked) if header.task.asks_model else None
        self._stopping = resources.control.stopping
        self._instances = read_instances(header.task)
        self.check = [i for i, each in enumerate(self._instances) if each.get("check")]
        self._search = [i for i in range(len(self._instances)) if i not in set(self.check)]
        scored = header.task.score == "critic"
        self._scorer = resources.scorer(header, on_call, self._known) if scored else None
        self._scoring = header.task if self._scorer else scoring_task(header.task, self._instances)
        self._outside = False  # whether a warning of a score outside 0 to 1 was given
        self._here: Here | None = None
        if header.task.isolation == "here":
            self._here = Here(header.task, resources.settings.workers)
        self._on_call = on_call
        self._workers = min(len(self._instances), resources.settings.max_concurrent)
        # Two texts at a time keep the slots busy; more would only finish later.
        usual = max(2, 2 * resources.settings.max_concurrent // self._workers)
        self._asking = threading.Semaphore(resources.settings.texts_at_once or usual)

    def evaluate(
        self, task: TaskRecord, program: str, limits: Limits, *, draw: int = 0, seed: int = 0
    ) -> Evaluation:
        """Evaluates a program on every instance, a text on those that are not for checking.

        It is `no_reply` if no instance got an answer, and has no fitness unless one has a score.
        EndpointError: the endpoint does not answer, or refuses; CallCancelled: it was to stop.
        """
        began = time.monotonic()
        if task.asks_model:
            tried, scored = self._try(program, self._search, limits)
            found = {place: each.instance for place, each in tried.items()}
            asked = [each.calls[0] for each in tried.values()]
            if all(call.reply is None for call in asked):
                scored = Evaluation(status="no_reply", error=last_error(asked))
        else:
            scored = self._scored(task, program, limits, draw, seed)
            places = self._search if task.evolves == "text" else range(len(self._instances))
            found = {i: self._instance(i, scored) for i in places}
        evaluation = scored
        if scored.status == "ok":
            evaluation = msgspec.structs.replace(
                self._sum(found, _means(scored)), notes=scored.notes
            )
        return msgspec.structs.replace(evaluation, seconds=time.monotonic() - began)

    def _scored(
        self, task: TaskRecord, program: str, limits: Limits, draw: int, seed: int
    ) -> Evaluation:
        """Runs a program on every instance, and scores what it returns, here or in the sandbox."""
        key = f"{task.hash}/{seed}/{draw}/{program}"
        if self._here is not None and task.given_text:
            everywhere = range(len(self._instances)) if task.evolves == "python" else self._search
            given: dict[int, object] = dict.fromkeys(everywhere, task.given(program))
            return scores_here(self._here, task, given, key, limits, self._at_once)
        source = program_source(task, program, self._instances, draw=draw, seed=seed)
        more = {"draw": draw, "seed": seed} if draw else {}
        scored = self._sandbox(self._scoring, source, limits, **more)
        if self._here is None or scored.status != "ok":
            return scored
        outcomes = value_of(scored)
        assert isinstance(outcomes, list)
        given = {i: value for i, (word, value) in enumerate(outcomes) if word == "ok"}
        return scores_here(self._here, task, given, key, limits, self._at_once)

    def attempt(self, text: str, places: Sequence[int], limits: Limits) -> list[TriedInstance]:
        """Tries a text on some of the instances; what was asked before is not asked again."""
        tried, _ = self._try(text, places, limits)
        return [tried[place] for place in places]

    def certify(self, initial: str, final: str, use: int) -> dict[str, float]:
        """Tests a final text against the initial one on the instances that nothing saw before.

        Args:
            initial: The initial text.
            final: The best text of the run.
            use: The number of this test among those of the run, from 1.

        Returns:
            Figures by name, see `evo.runs.batches.certify`.
        """
        scores = list[list[float]]()
        for text in (initial, final):
            tried = self.attempt(text, self.check, self._header.limits)
            scores.append([each.instance.score or 0.0 for each in tried])
        return certify(scores[0], scores[1], use)

    def race(self, rivals: Mapping[str, Evaluation], limits: Limits) -> dict[str, Evaluation]:
        """Tries texts on growing batches in lockstep, and drops those that cannot catch up.

        The texts are of one generation, each with its parent's evaluation, which is a rival; of a
        greedy run the best sibling is one, too.
        """
        header, began = self._header, time.monotonic()
        order = batch_order(header.seed, self.generation, self._search)
        found: dict[str, dict[int, Instance]] = {text: {} for text in rivals}
        reasons = dict.fromkeys(rivals, "")
        done: dict[str, Evaluation] = {}
        before = 0
        for size in batch_sizes(header.batches, len(order)):
            left = [text for text in rivals if text not in done]
            batch = order[before:size]
            ask = functools.partial(self._try, places=batch, limits=limits)
            results = parallel.map(ask, left, max_workers=1 if self._workers == 1 else None)
            for text, (tried, scored) in zip(left, results, strict=True):
                found[text] |= {place: tried[place].instance for place in batch}
                reasons[text] = reasons[text] or self._why_none(tried, scored)
            if size < len(order):
                scores = {
                    text: [found[text][i].score or 0.0 for i in order[:size]] for text in left
                }
                parents = [_scores_of(rivals[text], self._instances, order[:size]) for text in left]
                siblings = header.search is None
                lost = dropped(scores, parents, len(order) - size, siblings=siblings)
                for text, why in lost.items():
                    total = math.fsum(scores[text])
                    done[text] = Evaluation(
                        status="partial",
                        error=f"dropped after {size} of {len(order)} instances, "
                        f"{total:.6g} of them gained; on the same ones {why}",
                        metrics={"tried": float(size)},
                        instances=tuple(found[text][place] for place in sorted(found[text])),
                    )
            before = size
        done |= {text: self._sum(found[text]) for text in rivals if text not in done}
        for text, reason in reasons.items():
            if reason and not any(each.status == "ok" for each in found[text].values()):
                words = f"{done[text].error}; {reason}"
                done[text] = msgspec.structs.replace(done[text], error=words)
        seconds = (time.monotonic() - began) / max(1, len(rivals))
        return {t: msgspec.structs.replace(each, seconds=seconds) for t, each in done.items()}

    def _why_none(self, tried: Mapping[int, TriedInstance], scored: Evaluation) -> str:
        """Says why none of the instances that were tried together has a score; empty: one may."""
        calls = {place: each.calls[0] for place, each in tried.items()}
        if all(call.reply is None for call in calls.values()):
            return last_error(calls.values())
        if scored.status == "ok":
            return ""
        first = min(place for place, call in calls.items() if call.reply is not None)
        name = self._instances[first]["id"]
        return f"none has a score; on instance {name}: {last_line(scored.error)}"

    def _try(
        self, text: str, places: Sequence[int], limits: Limits
    ) -> tuple[dict[int, TriedInstance], Evaluation]:
        """Tries a text on some instances, by position, and scores the replies together."""
        key = text_key(text)

        asked = self._at_once(functools.partial(self._ask, text, key), places)
        answered = [call for call in asked if call.reply is not None]
        answered.sort(key=lambda call: call.index)  # the first that fails is the one that is quoted
        self._known.update(known_of(answered))
        calls: dict[int, tuple[InstanceCall, ...]] = {call.index: (call,) for call in asked}
        if self._scorer is None:
            outcomes: list[tuple[str, str | None]] = [("lost", None)] * len(self._instances)
            for call in answered:
                outcomes[call.index] = ("ok", call.reply)
            if self._here is None:
                scored = self._sandbox(self._scoring, json.dumps(outcomes), limits)
            else:
                given: dict[int, object] = {call.index: call.reply for call in answered}
                task = self._header.task
                luck = f"{task.hash}/{text}"
                scored = scores_here(self._here, task, given, luck, limits, self._at_once)
        else:
            score = functools.partial(self._score, self._scorer, text.strip())
            scores = dict[str, float]()
            for call, verdict in zip(answered, self._at_once(score, answered), strict=True):
                calls[call.index] = call, verdict
                scores |= {} if verdict.score is None else {str(call.index): verdict.score}
            scored = Evaluation(status="ok", fitness=0.0, metrics=scores)
        tried = {
            place: TriedInstance(self._instance(place, scored, lost=made[0].reply is None), made)
            for place, made in calls.items()
        }
        return tried, scored

    def _score(self, scorer: Scorer, text: str, call: InstanceCall) -> CriticCall:
        triple = Triple(text, self._instances[call.index]["prompt"], call.reply or "")
        place = self._header.children + call.index
        return scorer.score(triple, generation=self.generation, index=place)

    def _at_once(self, ask: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """Makes calls in parallel, in order; the first that fails ends the rest."""
        failed = threading.Event()

        def one(item: A) -> B:
            try:
                return ask(item)
            except BaseException:
                failed.set()
                raise

        with self._asking:
            made = parallel.map(one, items, max_workers=self._workers, raising=False, cancel=failed)
        # What came first is the reason; those that it cancelled only follow from it.
        errors = [each for each in made if isinstance(each, Exception)]
        for error in sorted(errors, key=lambda error: isinstance(error, CancelledError)):
            raise error
        return [each for each in made if not isinstance(each, Exception)]

    def _ask(self, text: str, key: str, index: int) -> InstanceCall:
        if (known := self._known.get((key, index))) is not None:
            return known
        if self._stopping.is_set():
            raise CallCancelled("a stop was asked for")
        prompt, luck = self._instances[index]["prompt"], key
        if index in self.check:  # the same for every text, as is that of a race
            luck = f"{self._header.seed}/check"
        elif self._header.batches:
            luck = f"{self._header.seed}/{self.generation}"
        assert self._caller is not None  # the task's texts are asked
        line = functools.partial(InstanceCall, generation=self.generation, program=key, index=index)
        try:
            made = self._caller.call(
                [{"role": "system", "content": text.strip()}, {"role": "user", "content": prompt}],
                seed=instance_seed(luck, index),
                generation=self.generation,
                index=self._header.children + index,
            )
        except (EndpointError, CallCancelled) as error:
            if was_sent(error):
                self._on_call(line(attempts=error.attempts))
            raise
        call = line(attempts=made.attempts, reply=made.reply)
        self._on_call(call)
        return call

    def _sum(self, found: Mapping[int, Instance], metrics: Mapping[str, float] = {}) -> Evaluation:
        """Makes the evaluation out of how it went on each instance."""
        task = self._header.task
        instances = [found[place] for place in self._search]
        held = [found[place] for place in self.check if place in found]
        if is_strict(task) and any(each.status != "ok" for each in held):
            held = []  # a row without a score counts as nothing that is known
        checked = [each.score or 0.0 for each in held]
        private = {"check_fitness": sum(checked) / len(checked)} if checked else {}
        unscored = [each.status for each in instances if each.status != "ok"]
        note = None
        if unscored:
            words = ", ".join(f"{unscored.count(s)} {s}" for s in dict.fromkeys(unscored))
            note = f"no score on {len(unscored)} of {len(instances)} instances: {words}"
        if len(unscored) == len(instances) or (unscored and is_strict(task)):
            lost = set(unscored) == {"no_reply"} and len(unscored) < len(instances)
            status = "error" if lost else unscored[0]
            return Evaluation(status=status, error=note, instances=tuple(instances))
        total = added(each.score or 0.0 for each in instances)
        fitness = total / len(instances)
        return Evaluation(
            status="ok",
            fitness=fitness,
            metrics={"objective": total, "strict_fitness": fitness, **metrics, **private},
            error=note and f"{note}; each counts as {task.missing or 0:g}",
            instances=tuple(instances),
        )

    def _instance(self, place: int, scored: Evaluation, *, lost: bool = False) -> Instance:
        """Returns the result of one instance out of the sandbox's result for all."""
        number, id_ = scored.metrics.get(str(place)), self._instances[place]["id"]
        if number is not None:
            return Instance(id=id_, status="ok", score=number)
        missing = self._header.task.missing
        if f"{place} invalid" in scored.metrics:
            return Instance(id=id_, status="invalid", score=missing)
        if (outside := scored.metrics.get(f"{place} outside")) is not None:
            self._warn_outside(id_, outside)
        failed = "error" if scored.status in ("ok", None) else scored.status
        if f"{place} timeout" in scored.metrics:
            failed = "timeout"
        return Instance(id=id_, status="no_reply" if lost else failed, score=missing)

    def _warn_outside(self, id_: str, score: float) -> None:
        """Says once that a score is not on the scale that the task states."""
        if not self._outside:
            self._outside = True
            warn(
                f"{self._header.task.name}: the evaluator returned {score!r} on instance {id_}, "
                "and this task's scores lie between 0 and 1; such a row has no score and counts "
                "as 0. Return a number from 0 to 1, or make the task without scale='unit' (in a "
                "folder with scores = 'any' in task.toml)"
            )


def _means(scored: Evaluation) -> dict[str, float]:
    """Returns the evaluator's other metrics, as means over the instances."""
    found = scored.metrics.items()
    return {name[5:]: value for name, value in found if name.startswith("mean ")}


def _scores_of(
    rival: Evaluation, instances: Sequence[JsonObject], places: Sequence[int]
) -> list[float]:
    """Returns a rival's scores by place; empty where it was not tried on all of them."""
    known = {each.id: each.score or 0.0 for each in rival.instances}
    names = [instances[place]["id"] for place in places]
    return [known[name] for name in names] if known.keys() >= set(names) else []


def last_error(calls: Iterable[InstanceCall]) -> str:
    """Returns why none of the calls got a reply, in words."""
    errors = [call.attempts[-1].error for call in calls if call.attempts]
    silent = "the model returned none" if errors else "no attempt was made"
    return f"no instance got a reply: {next(filter(None, errors), silent)}"
