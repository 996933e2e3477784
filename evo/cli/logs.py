"""Commands that look at logs, check them and copy them; they run no program unless stated."""

from __future__ import annotations

import os
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evo.cli.folders import RESCORED, best_of, find_logs, logs_with_programs, no_program
from evo.cli.options import Flag, LogPaths, Output, OwnFilters, OwnSearch
from evo.cli.own import make_known
from evo.cli.tables import FAILURE, dollars_of, number, say_who_is_no_llm, table
from evo.logs.escapes import plain_text
from evo.logs.types import writable
from evo.runs.fruitless import in_a_line, worded

if TYPE_CHECKING:
    from evo.logs.log import Log
    from evo.logs.records import AnyCall, Header
    from evo.runs.progress import Tally

QUANTILES = (0.5, 0.9, 0.99)
LONGEST = 150  # characters of a message that `evo show` prints
MOST_MESSAGES = 8  # messages of failures that `evo show` prints
HEADS = (
    *("log", "calls", "attempts", "failed attempts", "cached", "tokens", "dollars"),
    *("seconds a call, p50", "p90", "p99", "s/generation"),
    *("calls/s", "slots used", "queued s", "limited s"),
)
MODEL_HEADS = ("model", "calls", "children", "of them ok", "failed", "tokens", "dollars")
SESSION = {
    "calls_per_second": ".3g",
    "utilisation": ".1%",
    "queued_seconds": ".1f",
    "limited_seconds": ".1f",
}


def show(logs: LogPaths, *, child: str | None = None) -> int:
    """Shows what logs, or folders of logs, hold by generation; of a gate's log, by client.

    Args:
        child: Show one child instead, with its error and its whole reply, such as 3/1 for the
            child of index 1 in generation 3.
    """
    from evo.cli.gate_logs import show_gate
    from evo.gate.log import is_gate_log
    from evo.logs.log import read_log, summarise
    from evo.logs.noise import noise_of

    paths = [each for log in logs for each in (find_logs([log]) if Path(log).is_dir() else [log])]
    for path in paths:
        if child is not None:
            _show_child(read_log(path), child)
            continue
        if is_gate_log(Path(path)):
            show_gate(Path(path))
            continue
        log = read_log(path)
        print(f"{path}\n{summarise(log)}")
        if noise := noise_of(log.header, log.initial):
            print(noise)
        if log.sessions and log.header.task.uses_sandbox:
            print(f"sandbox: {', '.join(log.sessions[-1].protections) or 'no protection active'}")
        for end in log.ends[-1:]:
            print(f"last session: {end.reason}{': ' + end.message if end.message else ''}")
        _show_generations(log)
        print(", ".join(f"{n} {status}" for status, n in sorted(log.status_counts.items())))
        for name, count in sorted(log.rejections.items()):
            print(f"{count} rejected by the filter {name}")
        for name, count in sorted(log.exclusions.items()):
            print(f"{count} kept out of the archive by the filter {name}")
        for generation, text in log.advice:
            print(plain_text(f"advice from generation {generation} on:\n{text}"))
        _show_models(log)
        _show_tests(log)
        _show_failures(log)
    return 0


def _show_child(log: Log, place: str) -> None:
    """Prints one child: what became of it, its requests, its error and its reply."""
    generation, _, index = place.partition("/")
    if not (generation.isdecimal() and index.isdecimal()):
        raise ValueError(f"--child: expected GENERATION/INDEX, such as 3/1, got {place!r}")
    wanted = int(generation), int(index)
    child = next((each for each in log.children if (each.generation, each.index) == wanted), None)
    if child is None:
        raise ValueError(f"{log.path} has no child {place} with its texts")
    fitness = number(child.evaluation.fitness, ".6f", "none")
    print(f"{log.path}, child {place}: {child.evaluation.status}, fitness {fitness}")
    print(f"rewritten from {' and '.join(f'{g}/{i}' for g, i in child.parents) or 'the best'}")
    for attempt in child.attempts:
        print(plain_text(f"request: {attempt.status}{f', {e}' if (e := attempt.error) else ''}"))
    if child.evaluation.error:
        print(plain_text(f"error: {child.evaluation.error}"))
    print("no reply" if child.reply is None else f"reply:\n{plain_text(child.reply)}")


def _show_generations(log: Log) -> None:
    """Prints a table of the complete generations."""
    rows = []
    for each in log.generations:
        members = [out for out in log.outcomes if out.generation == each.generation]
        ok = sum(out.evaluation.status == "ok" for out in members)
        best = number(each.best_fitness, ".6f", "none")
        seconds = number(each.seconds, ".2f", "unknown")
        improved = "yes" if each.improved else ""
        counts = (ok, len(members) - ok, len(each.repeats))
        rows.append((each.generation, best, improved, *counts, seconds))
    heads = ("generation", "best fitness", "improved", "ok", "failed", "repeats", "seconds")
    print(table(rows, heads))


def _show_models(log: Log) -> None:
    """Prints a table of the calls of each model, for a log that has several."""
    from evo.logs.records import Outcome
    from evo.runs.progress import Tally

    rows, tallies = list[tuple[object, ...]](), list[Tally]()
    for name, calls in _by_model(log).items():
        made = [call.evaluation for call in calls if isinstance(call, Outcome)]
        ok, tally = sum(each.status == "ok" for each in made), _tally_of(calls, log.header)
        counts = (len(made), ok, len(made) - ok) if made else ("", "", "")
        tokens = number(tally.tokens, ",.0f", "unknown")
        rows.append((name, tally.calls, *counts, tokens, dollars_of(tally)))
        tallies.append(tally)
    if rows:
        print(table(rows, MODEL_HEADS))
        say_who_is_no_llm(tallies)


def _show_tests(log: Log) -> None:
    """Prints how better children did against their parents on fresh draws."""
    rows = []
    for each in log.confirmations.values():
        pairs = zip(each.parent, each.rival, strict=True)
        gains = [new - old for old, new in pairs if old is not None and new is not None]
        gain = number(statistics.fmean(gains) if gains else None, ".4g", "unknown")
        bound = number(each.bound, ".4g", "none")
        done = "replaced its parent" if each.accepted else "kept out"
        tried = f"{len(gains)} of {len(each.parent)}"
        rows.append(
            (f"{each.generation}/{each.index}", tried, gain, bound, f"{each.alpha:.2g}", done)
        )
    if rows:
        heads = ("child against its parent", "fresh draws", "mean gain", "lower limit", "alpha")
        print(table(rows, (*heads, "outcome")))


def _show_failures(log: Log) -> None:
    """Prints the most frequent messages of the failed children."""
    messages = Counter(
        (
            out.evaluation.status,
            in_a_line(worded(out.evaluation.error or "", log.header.task.evolves)),
        )
        for out in log.outcomes
        if out.evaluation.status != "ok"
    )
    rows = [
        (
            status,
            count,
            plain_text(message if len(message) <= LONGEST else f"{message[:LONGEST]}..."),
        )
        for (status, message), count in messages.most_common(MOST_MESSAGES)
    ]
    if rows:
        print(table(rows, ("failed with", "children", "message")))
    if (left := len(messages) - len(rows)) > 0:
        print(f"and {left} other messages, one per child in `replay.children`, column error")


def _plus_zero(fitness: float | None) -> float | None:
    """Returns a fitness, 0 for -0."""
    return None if fitness is None else fitness + 0.0


def stats(logs: LogPaths) -> int:
    """Shows what the calls of logs, or of folders of logs, cost and how long they took."""
    from evo.cli.gate_logs import tally_of_gate
    from evo.gate.log import is_gate_log, read_gate_log
    from evo.logs.log import read_log
    from evo.logs.timeouts import timeouts_of
    from evo.runs.progress import Tally

    paths = find_logs(logs)
    gates = [path for path in paths if is_gate_log(Path(path))]
    found = [read_log(path) for path in paths if path not in gates]
    rows, latencies, seconds = list[tuple[object, ...]](), list[float](), list[float]()
    tallies, total, n_again = list[Tally](), Tally(), 0
    for log in found:
        tally, own, again = Tally(), list[float](), log.header.source.startswith(RESCORED)
        n_again += again
        for call in log.calls:
            for each in (tally,) if again else (tally, total):
                each.add(call.attempts, log.header.asked_of(call))
            own += _latencies(call)
        times = [g.seconds for g in log.generations if g.seconds is not None]
        stats = log.ends[-1].stats if log.ends else {}
        session = (number(stats.get(name), form) for name, form in SESSION.items())
        tallies.append(tally)
        rows.append((log.path, *_figures(tally, own, times), *session))
        for name, calls in _by_model(log).items():
            waits = [latency for call in calls for latency in _latencies(call)]
            figures = _figures(_tally_of(calls, log.header), waits, [])
            rows.append((f"  {name}", *figures, *[""] * len(SESSION)))
        if not again:
            latencies += own
            seconds += times
    for path in gates:
        log_of_gate = read_gate_log(Path(path))
        tried = [each.attempt for each in log_of_gate.passed if each.attempt is not None]
        waited = [attempt.latency for attempt in tried if attempt.latency is not None]
        tallies.append(tally_of_gate(log_of_gate))
        figures = _figures(tallies[-1], waited, [])
        rows.append((path, *figures, *[""] * len(SESSION)))
    if len(found) > 1:
        rows.append(("total", *_figures(total, latencies, seconds), *[""] * len(SESSION)))
    print(table(rows, HEADS))
    print(
        "calls/s, slots used, queued and limited: of the last session, all its runs together; "
        "tokens and dollars: of the attempts that state their usage"
    )
    say_who_is_no_llm(tallies)
    if words := timeouts_of(log for log in found if not log.header.source.startswith(RESCORED)):
        print(words)
    if n_again:
        print(f"rescored logs ({n_again}) repeat the calls of their originals: not in the total")
    return 0


def _by_model(log: Log) -> dict[str, list[AnyCall]]:
    """Returns the calls of a log by the model that they asked; none where all asked the same."""
    found: dict[str, list[AnyCall]] = {}
    for call in log.calls:
        found.setdefault(log.header.asked_of(call).model.name, []).append(call)
    return found if len(found) > 1 else {}


def _tally_of(calls: Sequence[AnyCall], header: Header) -> Tally:
    """Returns the totals of some calls of a log."""
    from evo.runs.progress import Tally

    tally = Tally()
    for call in calls:
        tally.add(call.attempts, header.asked_of(call))
    return tally


def _latencies(call: AnyCall) -> list[float]:
    """Returns how long the requests of a call waited for their answers."""
    return [a.latency for a in call.attempts if a.latency is not None and not a.cached]


def _figures(tally: Tally, latencies: list[float], seconds: list[float]) -> tuple[object, ...]:
    from numpy import quantile

    failures = " ".join(f"{n}x{name}" for name, n in sorted(tally.failures.items()))
    slow = quantile(latencies, QUANTILES, method="inverted_cdf").tolist() if latencies else []
    return (
        tally.calls,
        "unknown" if tally.silent and not tally.attempts else tally.attempts,
        failures,
        tally.cached,
        number(tally.tokens, ",.0f", "unknown"),
        dollars_of(tally),
        *([f"{each:.2f}" for each in slow] or [""] * len(QUANTILES)),
        f"{sum(seconds) / len(seconds):.2f}" if seconds else "",
    )


def best(logs: LogPaths, *, output: Output = None, force: Flag = False, value: Flag = False) -> int:
    """Writes out the best program of a log, or of all logs of one task.

    Args:
        logs: A log, or several and folders: the best program over their runs.
        output: File to write, or folder where the program is several files; by default standard
            output. What is there already is kept, and refused if it is another program.
        force: Write over files that are there.
        value: Run the program once more, jailed, and keep its construction beside the log, so
            that pictures can show it.
    """
    from evo.logs.journal import LogError
    from evo.logs.noise import noise_of

    read, chosen_from = best_of(logs)
    found = read.best
    if found.program is None:
        raise LogError(f"{read.path}: {no_program(read.header)}")
    if value:
        from evo.runs.playback import keep_best_value

        print(
            f"{keep_best_value(read.path)}: the construction of its best program", file=sys.stderr
        )
    if output:
        several = bool(read.header.task.program_files)
        _write_program(output, found.program, several=several, force=force)
    elif not value:
        sys.stdout.write(found.program)
        if plain_text(found.program) != found.program:
            words = "control characters are escaped; -o FILE writes the program as it is"
            print(words, file=sys.stderr)
    where = f"generation {found.generation}, child {found.index}"
    if chosen_from > 1:
        where = f"the best of {chosen_from} logs is {read.path}, {where}"
    print(f"{plain_text(where)}: fitness {_plus_zero(found.evaluation.fitness)}", file=sys.stderr)
    if noise := noise_of(read.header, read.initial):
        print(noise, file=sys.stderr)
    return 0


def _write_program(path: Path, program: str, *, several: bool, force: bool) -> None:
    """Writes a program to a file, or the files of one to a folder; ValueError if others are there.

    Args:
        path: The file or folder.
        program: The program.
        several: Whether it is several files.
        force: Whether it replaces what is there.
    """
    from evo.logs.several import unpack
    from evo.tasks.several import write_files

    files = {path / name: text for name, text in unpack(program).items()} if several else {}
    files = files or {path: program}
    there = any(path.iterdir()) if path.is_dir() else os.path.lexists(path)
    if there and not force:
        if not all(_holds(each, text) for each, text in files.items()):
            raise ValueError(
                f"{path} exists already: name another one, or give --force to replace it"
            )
        print(f"{path} is there already, unchanged", file=sys.stderr)
    elif several:
        write_files(path, program)
    else:
        writable(path).write_text(program, encoding="utf-8")


def _holds(path: Path, text: str) -> bool:
    """Whether a file has this content."""
    return path.is_file() and path.read_bytes() == text.encode()


def verify(logs: LogPaths, *, salvage: Flag = False, output: Output = None) -> int:
    """Checks every line of logs; exit code 1 if one is not sound, or the one that is made.

    Args:
        logs: Logs of runs and gates, journals of allocations, or folders: all that is below them.
        salvage: Copy every sound line of one log to a new one, and say what is missing.
        output: Path of the new log, with --salvage.
    """
    from evo.gate.log import is_gate_log, read_gate_log
    from evo.logs.journal import LogError
    from evo.runs.verification import verify as check
    from evo.studies.allocation.journal import read_journal
    from evo.studies.folders import ALLOCATION

    if salvage or output:
        if not (salvage and output and len(logs) == 1):
            raise ValueError("--salvage goes with one log and -o NEW, such as -o sound.jsonl")
        return _salvage(logs[0], output)
    sound = True
    for path in map(Path, find_logs(logs, everything=True)):
        if not path.exists():
            raise ValueError(f"{path}: no such file")
        try:
            if path.name == ALLOCATION:
                print(f"{path}: sound, {len(read_journal(path).told)} rounds")
                continue
            if is_gate_log(path):
                print(f"{path}: sound, {len(read_gate_log(path).passed)} requests of a gate")
                continue
            verification = check(path)
        except LogError as error:
            print(plain_text(str(error)), file=sys.stderr)
            sound = False
            continue
        for fault in verification.faults:
            print(plain_text(fault), file=sys.stderr)
            sound = False
        if not verification.faults:
            print(f"{path}: sound, {verification.log.reader.lines} lines; {verification.task}")
    return 0 if sound else FAILURE


def _salvage(log: str, output: Path) -> int:
    """Copies every sound line of a log, and checks the copy."""
    from evo.logs.maintenance import salvage_log
    from evo.runs.verification import verify as check

    for missing in salvage_log(log, output):
        print(plain_text(f"{log}: {missing}"), file=sys.stderr)
    left = len(check(output).faults)
    rest = f", which is not a sound log: {left} of the above hold for it" if left else ""
    print(f"{output}: every sound line of {log}{rest}")
    return FAILURE if left else 0


def compact(log: Annotated[str, Parameter(name="LOG")], *, output: Output = None) -> int:
    """Copies a log without replies and programs.

    Args:
        log: The log.
        output: New file; by default beside it, .compact.jsonl.gz.
    """
    from evo.logs.maintenance import compact as copy

    path = Path(log)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    made = copy(path, output or path.with_name(f"{stem}.compact.jsonl.gz"))
    before, after = path.stat().st_size, made.path.stat().st_size
    print(f"{made.path}: {after:,} bytes, {after / before:.0%} of {path}")
    return 0


def rerun(
    logs: LogPaths,
    *,
    workers: int | None = None,
    search: OwnSearch = None,
    filters: OwnFilters = None,
) -> int:
    """Plays logs again with themselves as the model; programs run jailed.

    Args:
        logs: Logs that are not compact, or folders of logs.
        workers: Evaluations at a time.
        search: The search, if it is one of your own.
        filters: A filter of your own; may be given several times.
    """
    from evo.runs.playback import rerun as play

    make_known(search, filters)

    same = True
    for path in logs_with_programs(logs):
        outcome = play(path, workers=workers)
        print(outcome)
        same = same and outcome.same
    return 0 if same else FAILURE
