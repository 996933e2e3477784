"""One child of a run: its call, the program in the reply, and what the evaluator makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from evo import parallel
from evo.logs.journal import Writer
from evo.logs.records import Child, CriticCall, Evaluation, Header, InstanceCall, Reply
from evo.models.client import Call, CallCancelled, EndpointRefused
from evo.models.critics import Known, Triple, known_of
from evo.prompt import parse_reply
from evo.runs.batches import certify
from evo.runs.evaluations import Evaluations, plain
from evo.runs.instances import InstanceEvaluator
from evo.runs.planning import Asked
from evo.runs.resources import Resources
from evo.sandbox import EvaluatorClosed, SandboxError

Key = tuple[int, int, int]
"""Generation, index and draft of a call."""


def child_seed(seed: int, children: int, generation: int, index: int, draft: int = 0) -> int:
    """Returns the seed of a child's draft in [0, 2**31): it rests on these alone, never on T."""
    key = f"{seed}/{children}/{generation}/{index}" + (f"/draft {draft}" if draft else "")
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") >> 1


class Maker:
    """Makes a run's children: call, parse, evaluate; many threads may share it.

    `calls` are those that evaluations and the critic made in the generation under way; `instances`
    evaluates on the task's data set, if it has one.
    """

    instances: InstanceEvaluator | None = None

    def __init__(self, header: Header, resources: Resources, writer: Writer) -> None:
        self.calls: list[InstanceCall] = []
        self._asked: dict[Key, Call] = {}  # those that are logged before their child
        self._known: Known = {}
        self._resources, self._writer = resources, writer
        self._serial = 1 if resources.max_concurrent == 1 else None
        self.evaluations = Evaluations(header, resources.evaluator.evaluate)
        self.enter(header)

    def enter(self, header: Header) -> None:
        """Makes children under this configuration from here on; what is known stays."""
        self.header, resources = header, self._resources
        self._scorer = resources.scorer(header, self._log_call, self._known)
        self.evaluations.header = header
        if header.task.instances_file:
            self.instances = InstanceEvaluator(header, resources, self._log_call, self._known)
            self.evaluations.draw = self.instances.evaluate

    def begin(self, number: int) -> None:
        """Sets out on a generation."""
        self._asked = {key: call for key, call in self._asked.items() if key[0] >= number}
        self.calls = [call for call in self.calls if call.generation == number]
        if self.instances is not None:
            self.instances.generation = number

    def learn(self, calls: Iterable[InstanceCall], replies: Iterable[Reply]) -> None:
        """Takes over a log's calls, for evaluations and for children that are not logged."""
        self._known.update(known_of(calls))
        for said in replies:
            reason = said.attempts[-1].finish_reason if said.attempts else None
            call = Call(said.attempts, said.reply, said.reasoning, reason)
            self._asked[said.generation, said.index, said.draft] = call

    def replies_under(self, text: str) -> dict[str, str]:
        """Returns what the model said under an evolving text, by the instance's id."""
        return self.instances.replies_under(text) if self.instances else {}

    def make(self, number: int, index: int, asked: Asked, best: float | None) -> tuple[Child, bool]:
        """Makes one child, and says whether the endpoint refused its request.

        Of a child better than `best`, the best fitness so far, the construction is kept.
        """
        call, draft = self.ask(number, index, asked)
        program = self._program(call)
        if call.reply is None:
            last = call.attempts[-1].error if call.attempts else None
            evaluation = Evaluation(status="no_reply", error=call.rejected or last)
        elif program is None:
            cut = "truncated" if call.finish_reason == "length" else "no complete block"
            evaluation = Evaluation(status="no_program", error=f"the reply has no program: {cut}")
        else:
            evaluation = self._evaluate((number, index, draft), program, call)
        fitness = evaluation.fitness
        better = fitness is not None and (best is None or fitness > best)
        child = Child(
            generation=number,
            index=index,
            seed=child_seed(self.header.seed, self.header.children, number, index),
            prompt_hash=asked.prompt_hash,
            attempts=call.attempts,
            evaluation=plain(evaluation),
            parents=asked.planned.parents,
            operator=asked.planned.operator,
            draft=draft,
            reply=call.reply,
            reasoning=call.reasoning,
            program=program,
            value=evaluation.value if better else None,
        )
        unanswered = program is not None and evaluation.status == "no_reply"
        return child, call.rejected is not None or unanswered

    def ask(self, number: int, index: int, asked: Asked) -> tuple[Call, int]:
        """Returns a child's call, the one that its critic prefers if drafts are asked, and which.

        What an earlier session asked is not asked again.
        """
        drafts = range(self.header.drafts)
        calls: list[Call] = parallel.map(
            lambda k: self._draft((number, index, k), asked),
            drafts,
            max_workers=self._serial or len(drafts),
        )
        if len(calls) == 1:
            return calls[0], 0
        able = dict[str, int]()
        for k, call in enumerate(calls):
            if (program := self._program(call)) is not None:
                able.setdefault(program, k)  # of equal programs one is scored
        if len(able) < 2 or self._scorer is None:
            answered = [k for k, call in enumerate(calls) if call.reply is not None]
            chosen = next(iter([*able.values(), *answered, 0]))
            return calls[chosen], chosen
        system, query = (message["content"] for message in asked.messages)
        scorer, place = self._scorer, self.header.children + index

        def score(k: int) -> float:
            triple = Triple(system, query, calls[k].reply or "")
            said = scorer.score(triple, generation=number, index=place)
            return -1.0 if said.score is None else said.score

        scores = parallel.map(score, able.values(), max_workers=self._serial)
        best = max(scores)
        chosen = min(k for k, each in zip(able.values(), scores, strict=True) if each == best)
        return calls[chosen], chosen

    def program_of(self, number: int, index: int, asked: Asked) -> str | None:
        """Returns the program in a child's reply."""
        return self._program(self.ask(number, index, asked)[0])

    def _draft(self, key: Key, asked: Asked) -> Call:
        """Makes a call for a child; logs it where others of the child are to come first."""
        if (known := self._asked.get(key)) is not None:
            return known
        header, (number, index, k) = self.header, key
        seed = child_seed(header.seed, header.children, number, index, k)
        caller = self._resources.caller(header)
        call = caller.call(asked.messages, seed=seed, generation=number, index=index)
        self._resources.tally.add(call.attempts, header)
        if header.drafts > 1 or header.batches:
            self._keep(key, call)
        return call

    def _keep(self, key: Key, call: Call) -> None:
        """Keeps a call safe until its child can be logged, unless it was refused for good."""
        if key in self._asked:
            return
        self._asked[key] = call
        if call.rejected is None:
            number, index, draft = key
            line = Reply(
                generation=number, index=index, draft=draft, attempts=call.attempts,
                reply=call.reply, reasoning=call.reasoning,
            )  # fmt: skip
            self._writer.append(line)

    def drafts_besides(self, number: int, chosen: Sequence[int]) -> list[Call]:
        """Returns the calls of a generation's drafts but the chosen ones, which go by child."""
        of = {key: call for key, call in self._asked.items() if key[0] == number}
        return [call for (_, index, draft), call in of.items() if chosen[index] != draft]

    def _program(self, call: Call) -> str | None:
        evolves = self.header.task.evolves
        return parse_reply(call.reply, finish_reason=call.finish_reason, evolves=evolves)

    def _evaluate(self, key: Key, program: str, call: Call) -> Evaluation:
        """Evaluates a child's program; its call is logged first where that may fail or cost."""
        if self.header.task.asks_model:
            self._keep(key, call)
        try:
            return self.evaluations.of(program)
        except (EvaluatorClosed, SandboxError):
            self._keep(key, call)  # the reply was paid for
            raise

    def evaluate_initial(self, program: str) -> Evaluation:
        """Evaluates generation 0; raises EvaluatorClosed where a stop was asked for."""
        try:
            initial = self.evaluations.of(program)
        except CallCancelled:
            raise EvaluatorClosed("stopped before the initial text was evaluated") from None
        if initial.status == "no_reply":
            raise EndpointRefused(
                f"the initial text cannot be evaluated: {initial.error}; the run can go on once "
                "that is mended"
            )
        return initial

    def check(self, initial: str, final: str, use: int) -> dict[str, float]:
        """Returns what one test says of the final text, on instances that nothing saw before."""
        if self.instances is None or not self.header.task.asks_model or not self.instances.check:
            return {}
        scores = list[list[float]]()
        for text in (initial, final):
            tried = self.instances.attempt(text, self.instances.check, self.header.limits)
            scores.append([each.instance.score or 0.0 for each in tried])
        return certify(scores[0], scores[1], use)

    def _log_call(self, call: InstanceCall) -> None:
        self._writer.append(call)
        critic = self.header.critic if isinstance(call, CriticCall) else None
        self._resources.tally.add(call.attempts, critic or self.header)
        self.calls.append(call)
