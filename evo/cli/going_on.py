"""The command that continues logs, which is printed where runs ended early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from evo.logs.log import Log
    from evo.runs.handle import Prepared

Result = TypeVar("Result")

MOST_NAMED = 10  # files that a sentence or a command lists by name


class Interrupted(KeyboardInterrupt):
    """A command was stopped; the message says how to go on."""


def do(prepared: Prepared[Result], budget: Mapping[str, float] | None = None) -> Result:
    """Does prepared work; `Interrupted` names the command that continues its logs.

    Args:
        prepared: The work.
        budget: Its limits by unit, which hold for that command, too.
    """
    from evo.logs.log import read_log

    try:
        return prepared.do()
    except KeyboardInterrupt:
        begun = [read_log(path) for path in prepared.paths if path.exists()]
        if left := [log for log in begun if len(log.generations) < log.goal]:
            where = "it was" if len(left) == 1 else "they were"
            command = resume_command(left, budget)
            raise Interrupted(f"stopped; `{command}` goes on where {where}") from None
        raise


def resume_command(
    logs: Sequence[Log], budget: Mapping[str, float] | None = None, *, used_up: bool = False
) -> str:
    """Returns the command that continues logs where they were made, with what names an endpoint.

    It names the logs, or where they are many their folder. It has a budget if they had one, since
    without it all that their goals leave would be called.

    Args:
        logs: The logs.
        budget: The limits by unit that they had.
        used_up: Whether a budget ended them, this one or an earlier one, so that they take a
            higher one.
    """
    limits = {unit: f"{limit:.15g}" for unit, limit in (budget or {}).items()}
    if used_up:
        limits = dict.fromkeys(limits or ("calls",), "NUMBER")
    folders = {log.path.parent for log in logs}
    named = folders if len(logs) > MOST_NAMED and len(folders) == 1 else [log.path for log in logs]
    words = ["evo resume", *(quote(str(path)) for path in named)]
    options = [f"--budget {unit}={limit}" for unit, limit in limits.items()]
    return " ".join([*words, *_endpoint_of(logs[0]), *options])


def _endpoint_of(log: Log) -> list[str]:
    """Returns the options that say where a log's model is, unless the user's registry says so."""
    from evo.models.registry import ModelError, own_model

    logged = log.header.model
    last = next((each.model for each in reversed(log.sessions) if each.model), logged)
    if log.header.models or last.way != "endpoint" or last.base_url is None:
        return []
    try:
        known = own_model(logged, log.path).base_url == last.base_url
    except ModelError:
        known = False
    named = [] if last.name == logged.name else ["--model", quote(last.name)]
    return named if known else [*named, "--base-url", quote(last.base_url)]
