"""One child of a run: its call, the program in the reply, and what the evaluator makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from evo.llm.client import Call, CallCancelled, EndpointRefused
from evo.log import LogWriter
from evo.prompt import parse_reply
from evo.records import Child, Evaluation, Header, InstanceCall, Reply
from evo.runs.evaluations import Evaluates, EvaluationMemory
from evo.runs.instances import InstanceEvaluator
from evo.runs.noise import DrawnEvaluator
from evo.runs.planning import Asked
from evo.runs.resources import Resources
from evo.sandbox import EvaluatorClosed, SandboxError


def child_seed(seed: int, children: int, generation: int, index: int) -> int:
    """Returns a child's own seed in [0, 2**31): it rests on these alone, never on T."""
    key = f"{seed}/{children}/{generation}/{index}".encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:4], "big") >> 1


def plain(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without the construction, which has a place of its own in a line."""
    if evaluation.value is None:
        return evaluation
    return msgspec.structs.replace(evaluation, value=None)


class Maker:
    """Makes a run's children: call, parse, evaluate; many threads may share it.

    Attributes:
        calls: That evaluations of the generation under way made.
        replies: By index and draft, to children of it that are still to be evaluated.
        draws: Evaluates single draws.
        evaluator: Evaluates a program as the run does.
        memory: Evaluates each program once.
    """

    def __init__(self, header: Header, resources: Resources, writer: LogWriter) -> None:
        self.calls: list[InstanceCall] = []
        self.replies: dict[tuple[int, int], Reply] = {}
        self._resources, self._writer = resources, writer
        self._instances: InstanceEvaluator | None = None
        if header.task.instances_file:
            self._instances = InstanceEvaluator(
                header,
                resources.evaluator.evaluate,
                resources.caller(header),
                max_concurrent=resources.max_concurrent,
                stopping=resources.stopping,
                on_call=self._log_call,
            )
        self.evaluator: Evaluates
        self.enter(header)
        self.memory = EvaluationMemory(header.task, header.limits, self.evaluator)

    def enter(self, header: Header) -> None:
        """Makes children under this configuration from here on; what is known stays."""
        self.header = header
        source = self._instances or self._resources.evaluator
        self.draws = DrawnEvaluator(header, source)
        self.noisy = (header.draws, header.confirm) != (1, 0)
        self.evaluator = self.draws if self.noisy else source

    def begin(self, number: int) -> None:
        """Sets out on a generation."""
        self.calls = [call for call in self.calls if call.generation == number]
        self.memory.evaluator = self.evaluator
        if self._instances is not None:
            self._instances.generation = number

    def learn(self, calls: Iterable[InstanceCall]) -> None:
        """Takes over calls that evaluations made: they are not made again."""
        if self._instances is not None:
            self._instances.learn(calls)

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
        seed = child_seed(header.seed, header.children, number, index)
        call = self._ask(number, index, asked, seed)
        program = parse_reply(
            call.reply, finish_reason=call.finish_reason, evolves=header.task.evolves
        )
        if call.reply is None:
            last = call.attempts[-1].error if call.attempts else None
            evaluation = Evaluation(status="no_reply", error=call.rejected or last)
        elif program is None:
            cut = "truncated" if call.finish_reason == "length" else "no complete block"
            evaluation = Evaluation(status="no_program", error=f"the reply has no program: {cut}")
        else:
            evaluation = self._evaluate(number, index, program, call)
        fitness = evaluation.fitness
        better = fitness is not None and (best is None or fitness > best)
        child = Child(
            generation=number,
            index=index,
            seed=seed,
            prompt_hash=asked.prompt_hash,
            attempts=call.attempts,
            evaluation=plain(evaluation),
            parents=asked.planned.parents,
            operator=asked.planned.operator,
            reply=call.reply,
            reasoning=call.reasoning,
            program=program,
            value=evaluation.value if better else None,
        )
        unanswered = program is not None and evaluation.status == "no_reply"
        return child, call.rejected is not None or unanswered

    def _ask(self, number: int, index: int, asked: Asked, seed: int) -> Call:
        """Makes a child's call, unless an earlier session did."""
        if (kept := self.replies.get((index, 0))) is not None:
            reason = kept.attempts[-1].finish_reason if kept.attempts else None
            return Call(kept.attempts, kept.reply, kept.reasoning, reason)
        caller = self._resources.caller(self.header)
        call = caller.call(asked.messages, seed=seed, generation=number, index=index)
        self._resources.tally.add(call.attempts, self.header)
        return call

    def _evaluate(self, number: int, index: int, program: str, call: Call) -> Evaluation:
        """Evaluates a child's program; its call is logged first where that may fail or cost."""
        reply = Reply(
            generation=number,
            index=index,
            attempts=call.attempts,
            reply=call.reply,
            reasoning=call.reasoning,
        )
        logged = (index, 0) in self.replies
        if self.header.task.asks_model and not logged:
            self._writer.append(reply)
            logged = True
        try:
            return self.memory.evaluate(program)
        except (EvaluatorClosed, SandboxError):
            if not logged:  # the reply was paid for
                self._writer.append(reply)
            raise

    def _log_call(self, call: InstanceCall) -> None:
        self._writer.append(call)
        self._resources.tally.add(call.attempts, self.header)
        self.calls.append(call)
