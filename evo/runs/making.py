"""One child of a run: its call, the program in the reply, and what the evaluator makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from evo import parallel
from evo.critics import Triple
from evo.journal import Writer
from evo.llm.client import Call, CallCancelled, EndpointRefused
from evo.prompt import parse_reply
from evo.records import Child, CriticCall, Evaluation, Header, InstanceCall, Reply
from evo.runs.batches import certify
from evo.runs.evaluations import Evaluate, EvaluationMemory, plain
from evo.runs.instances import InstanceEvaluator
from evo.runs.noise import DrawnEvaluator
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

    `calls` are those that evaluations and the critic made in the generation under way; `draws`
    evaluates single draws, `evaluate` as the run does, `memory` each program once.
    """

    draws: DrawnEvaluator
    evaluate: Evaluate

    def __init__(self, header: Header, resources: Resources, writer: Writer) -> None:
        self.calls: list[InstanceCall] = []
        self._asked: dict[Key, Call] = {}  # those that are logged before their child
        self._resources, self._writer = resources, writer
        self._instances: InstanceEvaluator | None = None
        self._learnt: list[InstanceCall] = []
        self._serial = 1 if resources.max_concurrent == 1 else None
        self.memory = EvaluationMemory(header.task, header.limits, resources.evaluator.evaluate)
        self.enter(header)

    def enter(self, header: Header) -> None:
        """Makes children under this configuration from here on; what is known stays."""
        self.header, resources = header, self._resources
        self._scorer = resources.scorer(header, self._log_call)
        draw = resources.evaluator.evaluate
        if header.task.instances_file:
            self._instances = InstanceEvaluator(header, resources, self._log_call)
            draw = self._instances.evaluate
        learnt, self._learnt = self._learnt, []
        self.learn(learnt)
        self.draws = DrawnEvaluator(header, draw)
        self.noisy = (header.draws, header.confirm) != (1, 0)
        self.evaluate = self.memory.source = self.draws.evaluate if self.noisy else draw

    def begin(self, number: int) -> None:
        """Sets out on a generation."""
        self._asked = {key: call for key, call in self._asked.items() if key[0] >= number}
        self.calls = [call for call in self.calls if call.generation == number]
        if self._instances is not None:
            self._instances.generation = number

    def learn(self, calls: Iterable[InstanceCall]) -> None:
        """Takes over calls that evaluations made: they are not made again."""
        new = [*calls]
        self._learnt += new
        if self._instances is not None:
            self._instances.learn(new)
        if self._scorer is not None:
            self._scorer.learn(call for call in new if isinstance(call, CriticCall))

    def take_over(self, replies: Iterable[Reply]) -> None:
        """Takes over a log's calls for children that are not logged themselves."""
        for said in replies:
            reason = said.attempts[-1].finish_reason if said.attempts else None
            call = Call(said.attempts, said.reply, said.reasoning, reason)
            self._asked[said.generation, said.index, said.draft] = call

    def replies_under(self, text: str) -> dict[str, str]:
        """Returns what the model said under an evolving text, by the instance's id."""
        if self._instances is None or not self.header.task.asks_model:
            return {}
        return self._instances.replies_under(text)

    def evaluate_initial(self, program: str) -> Evaluation:
        """Evaluates generation 0; raises EvaluatorClosed where a stop was asked for."""
        try:
            initial = self.memory.evaluate(program)
        except CallCancelled:
            raise EvaluatorClosed("stopped before the initial text was evaluated") from None
        if initial.status == "no_reply":
            raise EndpointRefused(
                f"the initial text cannot be evaluated: {initial.error}; the run can go on once "
                "that is mended"
            )
        return initial

    def make(self, number: int, index: int, asked: Asked, best: float | None) -> tuple[Child, bool]:
        """Makes one child, and says whether the endpoint refused its request.

        Of a child better than `best`, the best fitness so far, the construction is kept.
        """
        header = self.header
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
            seed=child_seed(header.seed, header.children, number, index),
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

        def draft(k: int) -> Call:
            return self._draft((number, index, k), asked)

        if self.header.drafts == 1:
            return draft(0), 0
        drafts = range(self.header.drafts)
        workers = self._serial or len(drafts)
        calls: list[Call] = parallel.map(draft, drafts, max_workers=workers)
        chosen = self._choose(number, index, asked, calls)
        return calls[chosen], chosen

    def program_of(self, number: int, index: int, asked: Asked) -> str | None:
        """Returns the program in a child's reply."""
        return self._program(self.ask(number, index, asked)[0])

    def _choose(self, number: int, index: int, asked: Asked, calls: Sequence[Call]) -> int:
        """Returns the draft with the best score; of equal programs only one is scored."""
        able = dict[str, int]()
        for k, call in enumerate(calls):
            if (program := self._program(call)) is not None:
                able.setdefault(program, k)
        if len(able) < 2 or self._scorer is None:
            answered = [k for k, call in enumerate(calls) if call.reply is not None]
            return next(iter([*able.values(), *answered, 0]))
        system, query = (message["content"] for message in asked.messages)
        scorer, place = self._scorer, self.header.children + index

        def score(k: int) -> float:
            triple = Triple(system, query, calls[k].reply or "")
            said = scorer.score(triple, generation=number, index=place)
            return -1.0 if said.score is None else said.score

        scores = parallel.map(score, able.values(), max_workers=self._serial)
        return min(zip(scores, able.values(), strict=True), key=lambda each: (-each[0], each[1]))[1]

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
        number, index, draft = key
        self._asked[key] = call
        if call.rejected is None:
            self._writer.append(
                Reply(
                    generation=number,
                    index=index,
                    draft=draft,
                    attempts=call.attempts,
                    reply=call.reply,
                    reasoning=call.reasoning,
                )
            )

    def drafts_besides(self, number: int, chosen: Sequence[int]) -> list[Call]:
        """Returns the calls of a generation's drafts but the chosen ones, which go by child."""
        of = {key: call for key, call in self._asked.items() if key[0] == number}
        return [call for (_, index, draft), call in of.items() if chosen[index] != draft]

    def _program(self, call: Call) -> str | None:
        evolves = self.header.task.evolves
        return parse_reply(call.reply, finish_reason=call.finish_reason, evolves=evolves)

    def _evaluate(self, key: Key, program: str, call: Call) -> Evaluation:
        """Evaluates a child's program; its call is logged first where that may fail or cost."""
        if self.header.task.asks_model and key not in self._asked:
            self._keep(key, call)
        try:
            return self.memory.evaluate(program)
        except (EvaluatorClosed, SandboxError):
            if key not in self._asked:  # the reply was paid for
                self._keep(key, call)
            raise

    def race(self, rivals: Mapping[str, Evaluation]) -> None:
        """Evaluates a generation's new texts on growing batches; see `InstanceEvaluator.race`."""
        assert self._instances is not None
        for program, evaluation in self._instances.race(rivals, self.header.limits).items():
            self.memory.learn(program, evaluation)

    def check(self, initial: str, final: str, use: int) -> dict[str, float]:
        """Returns what one test says of the final text, on instances that nothing saw before."""
        if self._instances is None or not self.header.task.asks_model or not self._instances.check:
            return {}
        places, scores = self._instances.check, list[list[float]]()
        for text in (initial, final):
            tried = self._instances.attempt(text, places, self.header.limits)
            scores.append([each.instance.score or 0.0 for each in tried])
        return certify(scores[0], scores[1], use)

    def _log_call(self, call: InstanceCall) -> None:
        self._writer.append(call)
        critic = self.header.critic if isinstance(call, CriticCall) else None
        self._resources.tally.add(call.attempts, critic or self.header)
        self.calls.append(call)
