"""Evaluators that run in the caller's own process, with whatever they hold open there.

The program still runs in the sandbox; only what came of it is handed to the function. A time limit
is soft: a plain function that does not return in time is given up, and runs on in its thread.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import os
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future

import msgspec

from evo.logs.fitting import fit_text
from evo.logs.means import mean
from evo.logs.records import Evaluation, Limits, TaskRecord
from evo.logs.types import JsonObject
from evo.models.functions import is_async
from evo.sandbox import EVALUATOR_FAILED, values
from evo.sandbox.scores import ScoreRead, WrongScore, read_score
from evo.tasks.folder import TaskError
from evo.tasks.sources import first_name

ScoreOrFailure = Evaluation | ScoreRead
"""What a call of the function returned, or how it failed."""

_MOST_ERROR = 4000  # characters of a traceback that a log keeps
_MOST_SEED = 2**31


class Here:
    """Calls a task's function, several at a time.

    Args:
        task: A task whose isolation is `here`.
        workers: Calls of a plain function at a time; None: as many as there are processors.

    Raises:
        TaskError: The function is not here, as for a task that was read from a log.
    """

    def __init__(self, task: TaskRecord, workers: int | None = None) -> None:
        function = task.function
        if function is None:
            raise TaskError(
                f"{task.name}: its evaluator ran in the process that made the log and is not in "
                "it: give the task that has the function, task=evo.task(...)"
            )
        self._function = function
        self._seeded = "seed" in inspect.signature(function).parameters
        self._waits = is_async(function)
        self._slots = threading.Semaphore(workers or os.cpu_count() or 1)

    def score(self, given: list[object], key: str, limits: Limits) -> ScoreOrFailure:
        """Returns the score of a value, or of a value and its row, or how that failed.

        Args:
            given: The arguments of the function.
            key: What keys the seed, if the function takes one.
            limits: The time that it may take.
        """
        more: dict[str, object] = {}
        if self._seeded:
            digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
            more["seed"] = int.from_bytes(digest[:4], "big") % _MOST_SEED
        call = functools.partial(self._function, *given, **more)
        try:
            returned = self._called(call, limits.seconds)
        except TimeoutError:
            words = f"the evaluator took over {limits.seconds:g} s"
            return Evaluation(status="timeout", error=words)
        except ValueError as error:
            return Evaluation(status="invalid", error=fit_text(str(error), _MOST_ERROR))
        except Exception as error:  # the wall: whatever the user's function raises is its status
            words = fit_text(f"{EVALUATOR_FAILED}: {_described(error)}", _MOST_ERROR)
            return Evaluation(status="error", error=words)
        try:
            return read_score(returned, f"{first_name(self._function)}(...)")
        except ValueError as error:
            return Evaluation(status="invalid", error=str(error))
        except WrongScore as error:
            return Evaluation(status="error", error=f"{EVALUATOR_FAILED}: {error}")

    def _called(self, call: Callable[[], object], seconds: float) -> object:
        if self._waits:
            waited = asyncio.wait_for(_as_coroutine(call), seconds)
            return asyncio.run_coroutine_threadsafe(waited, _loop()).result()
        done: Future[object] = Future()

        def work() -> None:
            try:
                done.set_result(call())
            except BaseException as error:
                done.set_exception(error)
            finally:
                self._slots.release()

        self._slots.acquire()  # until the function returns, be that after its time
        threading.Thread(target=work, name="evo-evaluate", daemon=True).start()
        return done.result(seconds)


async def _as_coroutine(call: Callable[[], object]) -> object:
    found = call()
    assert isinstance(found, Coroutine)
    return await found


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop on which async evaluators run, on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="evo-evaluate", daemon=True).start()
    return loop


def _described(error: Exception) -> str:
    trace = error.__traceback__
    frames = list(traceback.walk_tb(trace))
    ours = [k for k, (frame, _) in enumerate(frames) if frame.f_code.co_filename == __file__]
    for _ in range(ours[-1] + 1 if ours else 0):
        trace = trace.tb_next if trace else None
    lines = traceback.format_exception(type(error), error, trace)
    return "".join(lines).strip()


def value_of(evaluation: Evaluation) -> object:
    """Returns what a program returned in the sandbox, where the task's evaluator is here."""
    assert isinstance(evaluation.value, bytes)
    return values.decode(evaluation.value)


def evaluate_here(
    here: Here,
    run: Callable[..., Evaluation],
    task: TaskRecord,
    program: str,
    limits: Limits,
    *,
    draw: int = 0,
    seed: int = 0,
) -> Evaluation:
    """Evaluates a program of a task without a data set in this process.

    Args:
        here: The evaluator.
        run: Runs a program in the sandbox.
        task: The task.
        program: The program, or the text that evolves.
        limits: Limits of each.
        draw: Which draw of randomness.
        seed: Of the run.
    """
    given: object = task.given(program)
    seconds = 0.0
    if not task.given_text and task.evolves == "python":
        more = {"draw": draw, "seed": seed} if draw else {}
        returned = run(task, program, limits, **more)
        if returned.status != "ok":
            return returned
        given, seconds = value_of(returned), returned.seconds or 0.0
    return whole(here.score([given], f"{task.hash}/{seed}/{draw}/{program}", limits), seconds)


def whole(scored: ScoreOrFailure, seconds: float = 0.0) -> Evaluation:
    """Returns an evaluation of what `Here.score` returned."""
    if isinstance(scored, Evaluation):
        return msgspec.structs.replace(scored, seconds=(scored.seconds or 0.0) + seconds)
    fitness, metrics, notes = scored
    return Evaluation(status="ok", fitness=fitness, metrics=metrics, notes=notes, seconds=seconds)


def scores_here(
    here: Here,
    task: TaskRecord,
    given: Mapping[int, object],
    key: str,
    limits: Limits,
    at_once: Callable[[Callable[[int], ScoreOrFailure], list[int]], list[ScoreOrFailure]],
) -> Evaluation:
    """Scores what came of instances in this process, as the sandbox does in its own.

    Args:
        here: The evaluator.
        task: The task.
        given: The first argument of the function, by the position of the instance.
        key: What keys the seeds.
        limits: The time that each may take.
        at_once: Calls a function with several items at a time.

    Returns:
        An evaluation whose metrics are those of `evo.sandbox.scores.score_instances`.
    """
    lines = filter(str.strip, task.files[task.instances_file].split("\n"))
    rows: list[JsonObject] = [json.loads(line) for line in lines]

    def one(place: int) -> ScoreOrFailure:
        return here.score([given[place], rows[place]], f"{key}/{place}", limits)

    numbers, sums, worst = dict[str, float](), dict[str, list[float]](), (float("inf"), "")
    failed: Evaluation | None = None
    for place, scored in zip(given, at_once(one, list(given)), strict=True):
        if isinstance(scored, Evaluation):
            numbers |= {f"{place} {scored.status}": 0.0}
            failed = failed or scored
            continue
        fitness, metrics, notes = scored
        if task.scores == "unit" and not 0 <= fitness <= 1:
            numbers[f"{place} outside"] = fitness
            words = f"{EVALUATOR_FAILED}: expected 0 to 1, got {fitness!r}"
            failed = failed or Evaluation(status="error", error=words)
            continue
        numbers[str(place)] = fitness
        if rows[place].get("check"):
            continue
        for name, value in metrics.items():
            sums.setdefault(name, []).append(value)
        if notes and fitness < worst[0]:
            worst = fitness, f"instance {rows[place].get('id', place + 1)}: {notes}"
    if failed is not None and not any(name.isdigit() for name in numbers):
        return failed
    means = {f"mean {name}": mean(found) for name, found in sums.items()}
    error = failed.error if failed else None
    return Evaluation(
        status="ok", fitness=0.0, metrics=numbers | means, notes=worst[1], error=error
    )
