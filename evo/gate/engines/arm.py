"""An engine as an arm: a pull grants it N calls at the gate, and its programs become children.

Call k that passes the gate, counted from 0, is child k mod N of generation 1 + k // N. The first
pull that the log does not hold already starts the engine's process. Between pulls its next request
waits at the turnstile. The judge evaluates the programs that the engine hands over in our sandbox,
and each is logged as soon as it is evaluated.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evo.gate.engines.job import ASK, Job, ProgramJudge, plain_lines
from evo.gate.engines.process import GRACE, EngineProcess
from evo.gate.engines.runs import EngineRun
from evo.gate.gate import Gate, Passage, Supervision
from evo.gate.log import ENGINE_LOG, read_gate_log
from evo.gate.turnstile import MOST_WAITING, Turnstile
from evo.logs.fitting import fit_text
from evo.logs.journal import Writer
from evo.logs.log import Log
from evo.logs.records import Attempt, Child, Evaluation, Line, RunEnd
from evo.models.client import EndpointDown, prompt_hash
from evo.runs.arm import Arm
from evo.runs.evaluate import plain
from evo.runs.loop import fitness_of, generation_line
from evo.runs.resources import Resources
from evo.runs.state import program_digest
from evo.runs.workers import Stopped
from evo.sandbox import EvaluatorClosed
from evo.searches.base import Place, choose

MOST_UNASKED = 64
"""Programs that an engine may have judged without a call; one more is taken for a flood."""

MOST_UNREACHED = 3
"""Calls in a row without a connection to the endpoint after which the allocation stops."""

SETTLE = 2.0
"""Seconds for which an engine that overlaps its work has nothing judged before a pull is over."""

LOOK = 0.05  # seconds between looks at the engine's process
LONGEST_PROMPT = 1 << 20  # characters; a longer prompt is not logged
_UNKNOWN = -1  # stands for a seed that is not known
_LOST = Attempt(status="error", latency=None, error="the process ended before the answer was known")


@dataclass(eq=False)
class _Call:
    """A call of the generation under way, until it is a line of the log."""

    passage: Passage
    lost: bool = False  # made by an earlier session, which left no line of it


class EngineArm(Arm):
    """A run whose children an engine makes.

    Attributes:
        folder: The engine's own folder, beside the log.
        abandoned: Whether the engine's process ended with an earlier session and cannot go on: the
            generation under way is completed from the log of the gate, and no other follows.
    """

    def __init__(self, writer: Writer, driven: EngineRun, resources: Resources) -> None:
        super().__init__(writer, driven.header, resources)
        self.folder = self.path.with_suffix("").absolute()
        self._driven = driven
        self._opened = contextlib.ExitStack()
        self._process: EngineProcess | None = None
        self._changed = threading.Condition()
        self._turnstile = Turnstile(MOST_WAITING, self._notify)
        self._calls: dict[int, _Call] = {}
        self._answered = 0  # calls of all sessions that were settled
        self._settled_here = 0  # and those of this one
        self._judging = self._unasked = 0
        self._unreached = 0  # calls in a row for which there was no connection
        self._last: bytes | None = None  # digest of what was judged since the last call
        self._moved = time.monotonic()
        self._failure: BaseException | None = None
        self._logged_end = False  # whether this session has logged that the engine is over
        self._places: dict[str, Place] = {}

    def begin(self, log: Log | None = None) -> None:
        """Evaluates the initial program, unless that is logged, and takes over what is known."""
        super().begin(log)
        initial = self.header.task.files[self.header.task.program_file]
        self._places[plain_lines(initial)] = (0, 0)
        for child in () if log is None else log.children:
            self._learn_place(child.program, (child.generation, child.index))
        for end in () if log is None else log.ends:
            if end.reason == "over":
                self.over = end.message or "the engine ended"
        gate_log = self.folder / ENGINE_LOG
        if not gate_log.exists():
            return
        self.abandoned = not (self.over or self._driven.engine.resumes)
        passed = read_gate_log(gate_log).passed
        self._answered = len(passed)
        for sent, attempt, _ in passed:
            generation, index = self._place(sent.number)
            if generation > self.generation and index not in self.state.children:
                known = Passage(sent.number, {}, attempt or _LOST, None)
                self._calls[sent.number] = _Call(known, lost=True)

    def advance(self, on_child: Callable[[Child], None] = lambda child: None) -> None:
        """Grants the engine its calls, waits for their programs and logs the generation.

        Args:
            on_child: Called with each child once it is logged.

        Raises:
            Stopped: A stop was asked for; the generation goes on from its log.
            LogError: The log of the gate is damaged.
        """
        number, children = self.generation + 1, self.header.children
        self._enter(number, on_child)
        missing = number * children - self._answered
        if missing > 0 and not self.over and not self.abandoned:
            self._resources.control.wait_until_free()
            self._start()
            self._moved = time.monotonic()
            self._turnstile.grant(missing)
            try:
                self._wait(number * children)
            finally:
                self._turnstile.revoke()
            if self.over:
                self.close(grace=0.0)
        elif missing > 0 and self.abandoned:
            self.over = "the engine's process ended with an earlier session and cannot go on"
        self._complete()

    def close(self, grace: float = GRACE) -> None:
        """Ends the engine's process, which has so many seconds for that; then gate and judge."""
        self._turnstile.close()
        if self._process is not None:
            self._process.end(grace)
        self._opened.close()
        self._process = None

    def end(self, end: RunEnd) -> None:
        """Logs that the session ended in an orderly way, or that the engine had ended before."""
        if not self._logged_end:
            super().end(RunEnd(reason="over", message=self.over) if self.over else end)

    def _start(self) -> None:
        """Starts the engine behind a gate of its own, unless it runs."""
        if self._process is not None:
            return
        header, driven = self.header, self._driven
        self.folder.mkdir(parents=True, exist_ok=True)
        gate = Gate(
            header.model,
            log=self.folder / ENGINE_LOG,
            timeout=self._resources.settings.call_timeout,
            seed=header.seed,
            supervision=Supervision(self._turnstile, self._passed),
        )
        judge = self._opened.enter_context(ProgramJudge(self._judge))
        self._opened.enter_context(gate)
        # Python would take a compiled copy for current if it was made within the same second.
        for compiled in self.folder.glob("__pycache__/judging.*"):
            compiled.unlink()
        (self.folder / "judging.py").write_text(ASK.format(url=judge.url))
        job = Job(
            folder=self.folder, python=driven.python, task=driven.task, model=gate.model.name,
            endpoint=gate.url, judge=judge.url, calls=driven.calls,
            children=header.children, seed=header.seed, sampling=header.sampling,
            full_rewrites=driven.full_rewrites,
        )  # fmt: skip
        # Nothing of this process's environment reaches the engine but where things are.
        environment = {n: os.environ[n] for n in ("PATH", "HOME", "TMPDIR") if n in os.environ}
        keys = dict.fromkeys(("OPENAI_API_KEY", "LOCAL_OPENAI_API_KEY"), f"arm-s{header.seed}")
        self._process = EngineProcess(driven.engine.command(job), self.folder, environment | keys)

    def _wait(self, calls: int) -> None:
        """Waits until this many calls were made and scored, or until the engine ends."""
        assert self._process is not None
        control = self._resources.control
        stopping, ended = control.stopping, control.ended
        while True:
            gone = self._process.ended  # before looking at what it has sent
            with self._changed:
                if self._failure is not None:
                    raise self._failure
                quiet = not self._judging and self._turnstile.passed == self._settled_here
                if stopping.is_set():
                    self._turnstile.revoke()
                    if quiet or ended.is_set():
                        raise Stopped
                elif self._over_now(gone, quiet) or (quiet and self._settled(calls)):
                    return
                self._changed.wait(LOOK)

    def _over_now(self, gone: str | None, quiet: bool) -> bool:
        """Records why the engine ended, if it did; the caller holds the lock."""
        idle = time.monotonic() - self._moved
        if self._turnstile.flooded:
            self.over = "the engine sent more requests at once than may wait"
        elif self._unasked > MOST_UNASKED:
            self.over = f"the engine had more than {MOST_UNASKED} programs judged without a call"
        elif gone is not None and quiet:
            self.over = gone
        elif quiet and idle > self._driven.patience:
            self.over = f"the engine showed no sign of life for {idle:.0f} s"
        return bool(self.over)

    def _settled(self, calls: int) -> bool:
        """Whether the engine made its calls and waits with the next request; the lock is held."""
        if self._answered < calls or not self._turnstile.waiting:
            return False
        judged = all(call.lost for call in self._calls.values())
        waited = time.monotonic() - self._moved >= SETTLE
        return judged or waited or not self._driven.engine.overlaps

    def _passed(self, passage: Passage) -> None:
        """Notes a call that was answered, or failed."""
        self._resources.tally.add((passage.attempt,), self.header)
        with self._changed:
            self._calls[passage.number] = _Call(passage)
            self._answered += 1
            self._settled_here += 1
            self._last, self._unasked = None, 0
            self._moved = time.monotonic()
            self._unreached = 0 if passage.attempt.sent else self._unreached + 1
            if self._unreached == MOST_UNREACHED:
                self._failure = EndpointDown(
                    f"{self.path}: no connection to the endpoint in {MOST_UNREACHED} calls in a "
                    f"row: {passage.attempt.error}; the allocation can go on later"
                )
                self._turnstile.revoke()  # before the engine has its answer, and asks again
            self._changed.notify_all()

    def _judge(self, program: str) -> Evaluation:
        """Evaluates a program and logs the child that it is, if it is one."""
        with self._changed:
            self._judging += 1
        try:
            evaluation = self.evaluate(program)
            with self._changed:
                number = self._caller_of(program)
                self._unasked += number is None
                call = None if number is None else self._calls.pop(number)
            if call is not None:
                self.log(self._child(call, program, evaluation))
            return evaluation
        except BaseException as error:
            with self._changed:
                self._failure = Stopped() if isinstance(error, EvaluatorClosed) else error
            raise
        finally:
            with self._changed:
                self._judging -= 1
                self._moved = time.monotonic()
                self._changed.notify_all()

    def _caller_of(self, program: str) -> int | None:
        """Returns the number of the call whose reply gave a program; the lock is held.

        It is the latest one that gave none yet, or of an engine that overlaps its work the one
        whose reply shares most lines with the program. A program that is judged twice counts once.
        """
        digest = program_digest(program)
        if self._last == digest:
            return None
        self._last = digest
        waiting = [n for n, call in self._calls.items() if not call.lost and call.passage.reply]
        if not waiting or not self._driven.engine.overlaps:
            return max(waiting, default=None)
        lines = _lines(program)

        def shared(number: int) -> tuple[int, int]:
            return len(lines & _lines(self._calls[number].passage.reply or "")), number

        return max(waiting, key=shared)

    def _child(self, call: _Call, program: str | None, evaluation: Evaluation) -> Child:
        """Returns the log line of a call and of the program in its reply."""
        passage, best, fitness = call.passage, self.state.best_fitness, evaluation.fitness
        generation, index = self._place(passage.number)
        messages = _messages(passage.body)
        parent = self._parent(messages)
        self._learn_place(program, (generation, index))
        better = fitness is not None and (best is None or fitness > best)
        return Child(
            generation=generation,
            index=index,
            seed=_UNKNOWN if passage.seed is None else passage.seed,
            prompt_hash=prompt_hash([{"role": r, "content": c} for r, c in messages]),
            attempts=(passage.attempt,),
            evaluation=plain(evaluation),
            parents=() if parent is None else (parent,),
            reply=passage.reply,
            program=program,
            prompt=messages if sum(len(c) for _, c in messages) <= LONGEST_PROMPT else (),
            value=evaluation.value if better else None,
        )

    def _parent(self, messages: tuple[tuple[str, str], ...]) -> Place | None:
        """Returns the place of the program that a prompt asks to rewrite, if it is known."""
        pattern = self._driven.engine.parent
        for _, content in reversed(messages) if pattern else ():
            if found := re.search(pattern, content, re.DOTALL):
                return self._places.get(plain_lines(found[1]))
        return None

    def _learn_place(self, program: str | None, place: Place) -> None:
        if program is not None:
            self._places.setdefault(plain_lines(program), place)

    def _complete(self) -> None:
        """Logs the calls that gave no program, and then the generation."""
        with self._changed:
            self._changed.wait_for(lambda: not self._judging)
            left, self._calls = sorted(self._calls.items()), {}
        for _, call in left:
            self.log(self._child(call, None, _failure(call)))
        state = self.state
        children = [state.children[index] for index in sorted(state.children)]
        chosen = choose(children, state.best_fitness, self.header.min_improvement, fitness_of)
        seconds = time.monotonic() - self._began
        lines: list[Line] = [generation_line(state, children, chosen, seconds)]
        if self.over:
            lines.append(RunEnd(reason="over", message=self.over))
            self._logged_end = True
        self.log(*lines)

    def _place(self, number: int) -> Place:
        """Returns generation and index of the child of a call, by its number at the gate."""
        generation, index = divmod(number, self.header.children)
        return generation + 1, index

    def _notify(self) -> None:
        with self._changed:
            self._moved = time.monotonic()
            self._changed.notify_all()


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}


def _messages(body: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Returns the messages of a request that are plain text, as a log can hold them."""
    listed = body.get("messages")
    found = [
        (each.get("role"), each.get("content"))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    ]
    return tuple(
        (fit_text(role, 100), fit_text(content, len(content)))
        for role, content in found
        if isinstance(role, str) and isinstance(content, str)
    )


def _failure(call: _Call) -> Evaluation:
    """Returns why a call gave no program."""
    attempt = call.passage.attempt
    if call.lost:
        error = attempt.error or "an earlier session ended before a program of it was judged"
        return Evaluation(status="no_reply", error=error, seconds=0.0)
    if attempt.status != "ok":
        return Evaluation(status="no_reply", error=attempt.error, seconds=0.0)
    words = "the engine had no program of this reply judged"
    return Evaluation(status="no_program", error=words, seconds=0.0)
