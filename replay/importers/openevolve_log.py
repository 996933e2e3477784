"""The text log of OpenEvolve: what it tells of each iteration, by session."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from evo.logs.records import Child, Status
from replay.importers import foreign, reading
from replay.importers.foreign import Failure

_STARTED = re.compile(r"Starting process-based evolution from iteration (\d{1,9}) for")
_LOGGED = re.compile(
    r"Iteration (\d{1,9})"
    r"(?: error(?: \[\w+\])?: (.*?)|: Program (\S+) \(parent: (\S+)\) completed in [\d.]+s)"
    r"(?: \| tokens: \d+ \(prompt: (\d{1,12}), completion: (\d{1,12})\))?$"
)
_BROKEN = re.compile(
    r"Iteration (?P<late>\d{1,9}) (?P<timeout>timed out after [\d.]+s)"
    r"|Error processing result from iteration (?P<lost>\d{1,9}): (?P<error>.*)"
)
_REJECTED = re.compile(r" - INFO - (?:Database|Admission strategy) rejected program \S+$")
_METRICS = re.compile(r" - INFO - Metrics: (.*)$")
_METRIC = re.compile(r"(?:^|, )([^=,]{1,80})=")
_NO_REPLY = re.compile("LLM generation failed|LLM returned None")
_NO_PROGRAM = re.compile(
    "No valid (diffs|code)|None of the .* SEARCH block|Diff did not change|Rewrite is identical|"
    "All edits were outside|Generated code exceeds|changes_description was not|"
    "(Unmatched|Malformed) SEARCH/REPLACE|Ambiguous diff block|EVOLVE-BLOCK markers were"
)
EVICTED = "completed, but in no checkpoint and no trace: fitness not in the source"
REJECTED = (
    "refused by the tool's database, as not novel or by its strategy; fitness not in the source"
)


@dataclass
class LoggedSession:
    """One start of the tool: its iterations, ids of programs and failed calls by iteration."""

    first: int
    last: int = 0
    made: dict[int, str] = field(default_factory=dict)
    failures: dict[int, Child] = field(default_factory=dict)
    rejected: int = 0

    def place_rejected(self) -> None:
        """Gives rejected programs, whose lines state no iteration, those that have no line.

        While other calls are under way, or after a kill, there are more of these: then none is.
        """
        last = max(self.last, self.first - 1)
        known = sum(self.first <= number <= last for number in self.failures)
        further = self.rejected - (last + 1 - self.first - known)
        if self.rejected and further >= 0:
            self.last = last + further
            for number in range(self.first, self.last + 1):
                failure = foreign.failed(number, ("rejected", REJECTED))
                self.failures.setdefault(number, failure)


@dataclass
class LoggedChild:
    """A child as the log tells it: without its code, its metrics to four decimals."""

    id: str
    iteration: int
    parent: str
    usage: dict[str, int]
    metrics: dict[str, object]


def read_log(path: Path) -> tuple[list[LoggedSession], list[LoggedChild]]:
    """Returns the sessions of a text log, and the children whose metrics it states."""
    sessions: list[LoggedSession] = []
    children: list[LoggedChild] = []
    last: LoggedChild | None = None
    for line in reading.read_text(path).splitlines():
        if started := _STARTED.search(line):
            sessions.append(LoggedSession(first=int(started[1])))
        elif match := _LOGGED.search(line):
            sessions = sessions or [LoggedSession(first=1)]
            last = _add(match, sessions[-1])
        elif match := _BROKEN.search(line):
            sessions = sessions or [LoggedSession(first=1)]
            number = int(match["late"] or match["lost"])
            sessions[-1].last = max(sessions[-1].last, number)
            failure = foreign.failed(number, why(match["timeout"] or match["error"]))
            sessions[-1].failures.setdefault(number, failure)
        elif last is not None and (told := _METRICS.search(line)):  # the line after its own
            last.metrics = _metrics(told[1])
            children.append(last)
        elif _REJECTED.search(line):
            sessions = sessions or [LoggedSession(first=1)]
            sessions[-1].rejected += 1
    for session in sessions:
        session.place_rejected()
    return sessions, children


def _add(match: re.Match[str], session: LoggedSession) -> LoggedChild | None:
    """Adds a line about an iteration to its session, and returns the child that it names."""
    iteration, message, program, parent, prompt, completion = match.groups()
    number = int(iteration)
    session.last = max(session.last, number)
    usage = {}
    if prompt:
        usage = {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}
    used = foreign.answered(*usage.values()) if usage else ()
    failure = (None, EVICTED) if program else why(message)
    session.failures[number] = foreign.failed(number, failure, attempts=used)
    if not program:
        return None
    session.made[number] = program
    return LoggedChild(program, number, parent, usage, {})


def _metrics(words: str) -> dict[str, object]:
    """The metrics in a line of a text log, where numbers and truth values have four decimals."""
    keys = list(_METRIC.finditer(words))
    ends = [*(key.start() for key in keys[1:]), len(words)]
    metrics: dict[str, object] = {}
    for key, end in zip(keys, ends, strict=True):
        value = words[key.end() : end]
        try:
            metrics[key[1]] = float(value)
        except ValueError:
            metrics[key[1]] = value
    return metrics | ({"timeout": True} if metrics.get("timeout") == 1 else {})


def why(message: str) -> Failure:
    """Returns how an iteration failed; an exception in the tool's own code is no status."""
    status: Status | None = "no_program" if _NO_PROGRAM.match(message) else None
    return ("no_reply" if _NO_REPLY.match(message) else status, message)
