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
- A program's instances with `"check": true` are held out: they count in no fitness, and their mean
  is the private metric `check_fitness`.

Values are scored in the sandbox, all instances at once, by the task's evaluator with a few lines
added below.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import msgspec

from evo import parallel
from evo.llm.client import Call, CallCancelled, Caller
from evo.records import (
    Attempt,
    Evaluation,
    Header,
    Instance,
    InstanceCall,
    Limits,
    Status,
    TaskRecord,
)
from evo.task import read_instances

Sandbox = Callable[..., Evaluation]
"""Evaluates one program or text in the sandbox, as `evo.sandbox.Evaluator.evaluate` does."""

INVALID, FAILED = -1.0, -2.0  # how the evaluator's process says that an instance has no score

SCORING = """

def _evo_scores(score=score):
    import json

    with open({file!r}, encoding="utf-8") as file:
        instances = [json.loads(line) for line in file if line.strip()]

    def one(value, instance, found):
        try:
            number = float(score(value, instance))
        except ValueError:
            return {invalid}
        except Exception as error:
            found.append(error)
            return {failed}
        if not 0 <= number <= 1:
            found.append(TypeError(f"score(value, instance): expected 0 to 1, got {{number!r}}"))
            return {failed}
        return number

    def scores(outcomes):
        if isinstance(outcomes, str):
            outcomes = json.loads(outcomes)
        found = []
        numbers = {{
            str(place): one(outcome[1], instance, found)
            for place, (outcome, instance) in enumerate(zip(outcomes, instances, strict=True))
            if outcome[0] == "ok"
        }}
        if found and len(found) == len(numbers):
            raise found[0]
        return {{"fitness": 0.0, **numbers}}

    return scores


score = _evo_scores()
"""
"""What the evaluator's source is followed by."""

RUNNING = """

def evo_on_instances():
    import json

    function = next((f for f in map(globals().get, {entry!r}) if callable(f)), None)
    if function is None:
        raise NameError("the program defines no function " + " or ".join({entry!r}))
    outcomes, errors = [], []
    for value in json.loads({inputs!r}):
        try:
            outcomes.append(["ok", function(value)])
        except Exception as error:
            errors.append(error)
            outcomes.append(["error", None])
    if len(errors) == len(outcomes):
        raise errors[0]
    return outcomes
"""
"""What a program's source is followed by."""


ON_LUCK = """

def evo_on_luck(names={entry!r}, luck={luck!r}):
    import hashlib
    from evo.sandbox.purity import seed_everything

    def lucky(function):
        tried = []

        def on_instance(value):
            tried.append(None)
            seed_everything(hashlib.sha256(f"{{luck}}/{{len(tried)}}".encode()).digest())
            return function(value)

        return on_instance

    for name in names:
        if callable(globals().get(name)):
            globals()[name] = lucky(globals()[name])


evo_on_luck()
"""
"""What comes before that in draws from 1 on: an instance's luck is that of no other."""


def text_key(text: str) -> str:
    """Returns what a log calls a text: 16 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def instance_seed(key: str, index: int) -> int:
    """Returns the seed, in [0, 2**31), of the call for a text and the instance at `index`."""
    return int.from_bytes(hashlib.sha256(f"{key}/{index}".encode()).digest()[:4], "big") >> 1


class InstanceEvaluator:
    """Evaluates programs or texts on a task's data set; many threads may share it.

    Args:
        header: The task, its model and N.
        sandbox: Evaluates in the sandbox.
        caller: Answers the calls; none are made where a program evolves.
        max_concurrent: Calls in flight at most; 1 works in order.
        stopping: Once set, no further call begins.
        on_call: Told of each call as soon as it is over, from the thread that made it.

    Attributes:
        generation: What calls are logged under; they wait behind its children's own calls.
    """

    def __init__(
        self,
        header: Header,
        sandbox: Sandbox,
        caller: Caller,
        *,
        max_concurrent: int,
        stopping: threading.Event | None = None,
        on_call: Callable[[InstanceCall], None] = lambda _: None,
    ) -> None:
        self.generation = 0
        self._children, self._sandbox, self._caller = header.children, sandbox, caller
        self._instances = read_instances(header.task)
        self._check = {i for i, each in enumerate(self._instances) if each.get("check")}
        self._entry = header.task.entry
        self._scoring = _scoring_task(header.task)
        self._stopping = stopping or threading.Event()
        self._on_call = on_call
        self._workers = min(len(self._instances), max_concurrent)
        # Two texts at a time keep the slots busy; more would only finish later.
        self._asking = threading.Semaphore(max(2, 2 * max_concurrent // self._workers))
        self._known: dict[tuple[str, int], InstanceCall] = {}

    def learn(self, calls: Iterable[InstanceCall]) -> None:
        """Takes over calls from a log: they are not made again."""
        self._known.update({(call.program, call.index): call for call in calls})

    def evaluate(
        self, task: TaskRecord, program: str, limits: Limits, *, draw: int = 0, seed: int = 0
    ) -> Evaluation:
        """Evaluates a program or a text on every instance.

        Args:
            task: The header's.
            program: Source text, or the text that evolves.
            limits: Of the run on all instances, and of scoring them.
            draw: Of a program's randomness; 0 is keyed by its text. A text has one.
            seed: Of the run, which keys the other draws.

        Returns:
            The evaluation; `no_reply` if no instance got an answer, and without a fitness unless
            at least one instance has a score.

        Raises:
            EndpointError: The endpoint does not answer, or refuses the key or the model.
            CallCancelled: The calls were cancelled, or a stop was asked for.
        """
        began = time.monotonic()
        lost: dict[int, Status] = {}
        if task.asks_model:
            calls = self._ask_all(program, range(len(self._instances)))
            self.learn(call for call in calls if call.reply is not None)
            lost = {call.index: "no_reply" for call in calls if call.reply is None}
            if len(lost) == len(calls):
                evaluation = Evaluation(status="no_reply", error=last_error(calls))
                return msgspec.structs.replace(evaluation, seconds=time.monotonic() - began)
            scored = self._score(calls, limits)
        else:
            inputs = json.dumps([instance["input"] for instance in self._instances])
            running = RUNNING.format(entry=self._entry, inputs=inputs)
            harness = task.files[task.harness_file] if task.harness_file else ""
            luck, more = "", {}
            if draw:
                more = {"draw": draw, "seed": seed}
                luck = ON_LUCK.format(entry=self._entry, luck=f"{task.hash}/{seed}/{draw}")
            source = f"{program.rstrip()}\n\n{harness}{luck}{running}"
            scored = self._sandbox(self._scoring, source, limits, **more)
        evaluation = self._read(scored, lost)
        return msgspec.structs.replace(evaluation, seconds=time.monotonic() - began)

    def replies_under(self, text: str) -> dict[str, str]:
        """Returns what the model said under a text, by the instance's id, as far as it did."""
        key = text_key(text)
        calls = {i: self._known.get((key, i)) for i in range(len(self._instances))}
        return {
            self._instances[i]["id"]: call.reply for i, call in calls.items() if call and call.reply
        }

    def attempt(
        self, text: str, places: Sequence[int], limits: Limits
    ) -> list[tuple[Instance, InstanceCall]]:
        """Tries a text on some of the instances; what was asked before is not asked again.

        Args:
            text: The text that evolves.
            places: Positions of the instances in the data set.
            limits: Of scoring them.

        Returns:
            By place, how it went and the call for it.

        Raises:
            EndpointError: The endpoint does not answer, or refuses the key or the model.
            CallCancelled: The calls were cancelled, or a stop was asked for.
        """
        calls = self._ask_all(text, places)
        self.learn(calls)
        scored = self._score(calls, limits)
        tried = []
        for call in calls:
            lost: Status | None = "no_reply" if call.reply is None else None
            tried.append((self._instance(call.index, scored, lost), call))
        return tried

    def _score(self, calls: Sequence[InstanceCall], limits: Limits) -> Evaluation:
        """Has the replies scored, those of other instances left out."""
        outcomes: list[tuple[str, str | None]] = [("lost", None)] * len(self._instances)
        for call in calls:
            if call.reply is not None:
                outcomes[call.index] = ("ok", call.reply)
        return self._sandbox(self._scoring, json.dumps(outcomes), limits)

    def _ask_all(self, text: str, places: Sequence[int]) -> list[InstanceCall]:
        key, failed = text_key(text), threading.Event()

        def ask(index: int) -> InstanceCall:
            known = self._known.get((key, index))
            if known is not None:
                return known
            try:
                if self._stopping.is_set():
                    raise CallCancelled("a stop was asked for")
                return self._ask(text, key, index)
            except BaseException:
                failed.set()
                raise

        with self._asking:
            calls: list[Any] = parallel.map(
                ask, places, max_workers=self._workers, raising=False, cancel=failed
            )
        # What came first is the reason; those that it cancelled only follow from it.
        errors = [call for call in calls if isinstance(call, Exception)]
        for error in sorted(errors, key=lambda error: isinstance(error, CancelledError)):
            raise error
        return calls

    def _ask(self, text: str, key: str, index: int) -> InstanceCall:
        prompt = self._instances[index]["prompt"]
        made: Call = self._caller.call(
            [{"role": "system", "content": text.strip()}, {"role": "user", "content": prompt}],
            seed=instance_seed(key, index),
            generation=self.generation,
            index=self._children + index,
        )
        call = InstanceCall(
            generation=self.generation,
            program=key,
            index=index,
            attempts=made.attempts,
            reply=made.reply,
        )
        self._on_call(call)
        return call

    def _read(self, scored: Evaluation, lost: dict[int, Status]) -> Evaluation:
        """Makes the evaluation out of what the sandbox says of all instances."""
        if scored.status != "ok":
            return scored
        places = range(len(self._instances))
        tried = [self._instance(place, scored, lost.get(place)) for place in places]
        instances = [each for place, each in enumerate(tried) if place not in self._check]
        checked = [tried[place].score or 0.0 for place in sorted(self._check)]
        private = {"check_fitness": sum(checked) / len(checked)} if checked else {}
        scores = [each.score for each in instances if each.score is not None]
        unscored = [each.status for each in instances if each.status != "ok"]
        note = None
        if unscored:
            words = ", ".join(f"{unscored.count(s)} {s}" for s in dict.fromkeys(unscored))
            note = f"no score on {len(unscored)} of {len(instances)} instances: {words}"
        if not scores:
            return Evaluation(status=unscored[0], error=note, instances=tuple(instances))
        total = sum(scores)
        fitness = total / len(instances)
        return Evaluation(
            status="ok",
            fitness=fitness,
            metrics={"objective": total, "strict_fitness": fitness, **private},
            error=note and f"{note}; each counts as 0",
            instances=tuple(instances),
        )

    def _instance(self, place: int, scored: Evaluation, lost: Status | None) -> Instance:
        """Returns how one instance went, as the sandbox says of all."""
        number = scored.metrics.get(str(place))
        failed = scored.status or "error"
        status: Status = lost or ("error" if failed == "ok" else failed)
        if number == INVALID:
            status = "invalid"
        elif number is not None and number >= 0:
            status = "ok"
        score = number if status == "ok" else None
        return Instance(id=self._instances[place]["id"], status=status, score=score)


def _scoring_task(task: TaskRecord) -> TaskRecord:
    """Returns the task whose `score` takes what came of all instances."""
    source = task.files[task.evaluator_file].rstrip() + "\n"
    source += SCORING.format(file=task.instances_file, invalid=INVALID, failed=FAILED)
    return msgspec.structs.replace(
        task,
        files={**task.files, task.evaluator_file: source},
        hash=f"{task.hash} on instances",
        entry=("evo_on_instances",),
    )


def last_error(calls: Iterable[InstanceCall]) -> str:
    """Returns why none of the calls got a reply, in words."""
    attempts: list[Attempt] = [attempt for call in calls for attempt in call.attempts[-1:]]
    reason = next((attempt.error for attempt in attempts if attempt.error), "no attempt was made")
    return f"no instance got a reply: {reason}"
