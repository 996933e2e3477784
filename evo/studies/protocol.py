"""Protocols: what is to be run, measured and claimed, written down before the first call.

A protocol is a TOML file. Its hash goes into the header of every log that is made for it, so that
another file is another protocol; only the table `result`, filled in at the end, is not part of it.
`evo run --protocol FILE` makes the missing runs, `evo protocol FILE --status` shows how far it is.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Unpack, cast

import msgspec

from evo.logs import examples
from evo.logs.cost import price_of_tokens
from evo.logs.log import Log, Logs
from evo.logs.maintenance import lines_through
from evo.logs.records import Header
from evo.logs.types import as_path
from evo.plugins import meant
from evo.policies import POLICIES
from evo.policies.rewards import find_reward
from evo.runs.configuration import LOCAL, make_header, seeds_of, settings_of
from evo.runs.fork import changed, copies_of
from evo.runs.handle import Control, read_begun
from evo.runs.identity import differences
from evo.runs.options import GridConfiguration, SessionOptions
from evo.runs.resources import open_resources
from evo.runs.session import RunJob, run_jobs
from evo.runs.settings import Goal
from evo.runs.signatures import check_options
from evo.tasks.task import load_task

SHIPPED = Path(__file__).with_name("protocols")


class ProtocolError(ValueError):
    """A protocol cannot be read or held; the message states what was expected.

    Example:
        >>> try:
        ...     evo.protocols.load_protocol("nowhere")
        ... except evo.protocols.ProtocolError as error:
        ...     print(type(error).__name__)
        ProtocolError
    """


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of what a protocol holds: the unknown is refused."""


class Condition(_Part, frozen=True, kw_only=True):
    """Runs that differ in their seed alone: seeds "40:50" are 40 ... 49.

    Its `options`, see `make_header`, come before the protocol's own. Forks name what they leave as
    PROTOCOL/CONDITION, the generation `at` which they do, and how many `copies` of each of its
    runs go on to `generations` in all; `seeds` are those of the runs that they leave.
    """

    name: str
    task: str
    children: int
    generations: int
    seeds: str
    options: dict[str, object] = {}
    role: str = ""
    forks: str = ""
    at: int = 0
    copies: int = 1

    @property
    def numbers(self) -> tuple[int, ...]:
        """The seeds."""
        try:
            return seeds_of(self.seeds)
        except ValueError as error:
            raise ProtocolError(f"condition {self.name!r}: {error}") from None

    @property
    def runs(self) -> int:
        """Number of runs that are planned."""
        return len(self.numbers) * self.copies

    @property
    def calls(self) -> int:
        """Calls of children, over all its runs."""
        return self.runs * self.children * (self.generations - self.at)


class Claim(_Part, frozen=True, kw_only=True):
    """A statement about two conditions that the runs decide; of a `descriptive` one no verdict.

    A difference in the measure up to `margin` counts as none.
    """

    name: str
    text: str
    measure: str
    a: str
    b: str
    margin: float = 0.0
    kind: Literal["confirmatory", "descriptive"] = "confirmatory"


class PolicyClaim(_Part, frozen=True, kw_only=True):
    """A statement about two allocation policies, decided by replaying one condition's runs.

    Each replicate draws `arms` runs of the condition without replacement and lets both policies
    make `pulls` pulls on them; the effect is the mean difference (`policy` less `against`) of the
    best fitness at the end. Claims are tested in the order of the file: a secondary claim is
    tested only if every claim before it was accepted.

    Attributes:
        name: Name of the claim.
        text: The claim in words.
        condition: Name of the condition whose complete runs serve as arms.
        policy: Policy that the claim is about; a name out of `evo.policies.POLICIES`.
        against: Policy that it is compared with.
        arms: Number of arms K in each replicate.
        pulls: Number of pulls of each replicate.
        replicates: Number of replicates B.
        seed: Seed of the draws of arms and of the policies' own draws.
        reward: Name of the reward; see `evo.rewards.REWARDS`.
        parameters: Parameters of the policies by policy name; the defaults apply elsewhere.
        alternative: Direction of the test.
        alpha: Level of the test, on the side or sides that `alternative` names.
        role: A descriptive claim gets an interval and no verdict.
        expected: Outcome that was expected before the first call.
    """

    name: str
    text: str
    condition: str
    policy: str
    against: str
    arms: int
    pulls: int
    replicates: int
    seed: int = 0
    reward: str = "best_fitness"
    parameters: dict[str, dict[str, float]] = {}
    alternative: Literal["greater", "two-sided"] = "greater"
    alpha: float = 0.025
    role: Literal["primary", "secondary", "descriptive"] = "primary"
    expected: str = ""


class CallEstimate(_Part, frozen=True, kw_only=True):
    """Expected cost of a call, and the basis of this estimate."""

    prompt_tokens: float
    completion_tokens: float
    calls_per_hour: float | None = None
    basis: str = ""


class Protocol(_Part, frozen=True, kw_only=True):
    """A protocol as its file states it.

    Attributes:
        tasks: Hash of each task, by name.
        options: What identifies all runs: model, sampling, limits; see `make_header`.
        measures: What is measured of a run, in words, by name.
        claims: Statements about differences between conditions.
        policy_claims: Statements about policies replayed over a condition's runs.
        detects: Which differences the design can detect, with which power.
        notes: What else was decided beforehand: pilots, stopping, exclusions.
        stop: `settled` if runs may stop as soon as the claims about conditions are settled, however
            often one looks: they are then judged by evidence that allows it. Empty: the number of
            runs is fixed.
        result: What came out; not part of the hash.

    Example:
        >>> protocol = evo.protocols.load_protocol("local-tsp")
        >>> [condition.name for condition in protocol.conditions][:2]
        ['deep', 'broad']
    """

    name: str
    title: str
    tasks: dict[str, str]
    conditions: tuple[Condition, ...]
    measures: dict[str, str]
    claims: tuple[Claim, ...] = ()
    policy_claims: tuple[PolicyClaim, ...] = ()
    estimate: CallEstimate
    detects: tuple[str, ...]
    options: dict[str, object] = {}
    notes: dict[str, str] = {}
    stop: Literal["", "settled"] = ""
    result: dict[str, object] = {}

    def __post_init__(self) -> None:
        names = [condition.name for condition in self.conditions]
        if len(set(names)) < len(names) or not names:
            raise ValueError(f"conditions: expected names of their own, got {names!r}")
        for claim in self.claims:
            for name, known in ((claim.a, names), (claim.b, names), (claim.measure, self.measures)):
                if name not in known:
                    raise ValueError(
                        f"claim {claim.name!r}: expected one of {', '.join(known)}, got {name!r}"
                    )
        for each in self.policy_claims:
            self._check_policy_claim(each, names)

    @staticmethod
    def _check_policy_claim(claim: PolicyClaim, conditions: Sequence[str]) -> None:
        about = f"policy claim {claim.name!r}"
        if claim.condition not in conditions:
            raise ValueError(
                f"{about}: expected a condition out of {', '.join(conditions)}, "
                f"got {claim.condition!r}"
            )
        for name in (claim.policy, claim.against, *claim.parameters):
            if name not in POLICIES:
                known = ", ".join(sorted(POLICIES.names()))
                raise ValueError(f"{about}: expected a policy out of {known}, got {name!r}")
        find_reward(claim.reward)
        if min(claim.arms, claim.pulls, claim.replicates) < 2 or claim.seed < 0:
            raise ValueError(
                f"{about}: expected at least 2 arms, pulls and replicates and a seed of 0 or more, "
                f"got arms={claim.arms!r}, pulls={claim.pulls!r}, "
                f"replicates={claim.replicates!r}, seed={claim.seed!r}"
            )
        if not 0.0 < claim.alpha < 0.5:
            raise ValueError(f"{about}: expected alpha between 0 and 0.5, got {claim.alpha!r}")

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all it states but the result."""
        stated = msgspec.to_builtins(msgspec.structs.replace(self, result={}))
        return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

    @property
    def calls(self) -> int:
        """Calls of children, over all conditions."""
        return sum(condition.calls for condition in self.conditions)


def load_protocol(file: str | os.PathLike[str]) -> Protocol:
    """Reads a protocol, which fixes runs and claims before the first call.

    Args:
        file: A TOML file, or the name of a shipped protocol.

    Raises:
        ProtocolError: The file is missing or not a protocol; the message shows a minimal valid
            file.

    Example:
        >>> evo.protocols.load_protocol("local-tsp").name
        'local-tsp'
    """
    shipped = {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}
    path = as_path("file", file)
    path = shipped.get(os.fspath(file), path)
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Protocol)
    except OSError:
        name, known = os.fspath(file), ", ".join(shipped)
        raise ProtocolError(
            f"no protocol {name!r}: expected a file or one of {known}{meant(name, shipped)}"
        ) from None
    except (ValueError, RecursionError) as error:  # of TOML, its encoding, or what it states
        raise ProtocolError(f"{path}: {error}; {examples.minimal(examples.PROTOCOL)}") from None


def jobs_of(protocol: Protocol, folder: str | os.PathLike[str] | None = None) -> list[RunJob]:
    """Returns the runs of a protocol, so ordered that any beginning of them is balanced."""
    place = LOCAL / protocol.name if folder is None else as_path("folder", folder)
    found: list[tuple[float, int, RunJob]] = []
    for order, condition in enumerate(protocol.conditions):
        header = _header(protocol, condition)
        for at, seed in enumerate(condition.numbers):
            own = msgspec.structs.replace(header, seed=seed)
            path = place / f"{condition.name}-s{seed}.jsonl"
            jobs = [RunJob(path, own, Goal(condition.generations))]
            if condition.forks:
                jobs = _forks(protocol, condition, own, place)
            rank = (at + 0.5) / len(condition.numbers)
            found += [(rank, order, job) for job in jobs]
    return [job for _, _, job in sorted(found, key=lambda each: each[:2])]


def _forks(protocol: Protocol, condition: Condition, header: Header, place: Path) -> list[RunJob]:
    """The copies of one run of another protocol, whose folder stands beside this one's."""
    folder, _, name = condition.forks.partition("/")
    path = place.parent / folder / f"{name}-s{header.seed}.jsonl"
    run = _begun(path)
    if run is None or len(run.generations) < condition.at:
        return []
    own = changed(run.header.at_generation(condition.at + 1), run, **_options(protocol, condition))
    lines = lines_through(run, condition.at, run.children)
    headers, inherited = copies_of(run, own, lines, condition.at, condition.copies)
    goal = Goal(condition.generations)
    stem = place / f"{condition.name}-s{header.seed}"
    return [
        RunJob(Path(f"{stem}-c{copy}.jsonl"), each, goal, named=True, inherited=inherited)
        for copy, each in enumerate(headers)
    ]


def _options(protocol: Protocol, condition: Condition) -> GridConfiguration:
    stated = {"protocol": protocol.digest, "condition": condition.name}
    return cast(GridConfiguration, {**protocol.options, **condition.options, **stated})


def _header(protocol: Protocol, condition: Condition) -> Header:
    task = load_task(condition.task)
    stated = protocol.tasks.get(task.name)
    if stated != task.record.hash:
        raise ProtocolError(
            f"{protocol.name}: condition {condition.name!r}: expected the task {task.name!r} with "
            f"hash {stated!r}, got {task.record.hash!r}: another task is another protocol"
        )
    try:
        # A protocol knows its task by the hash, which does not cover the notes.
        task = replace(task, record=task.record.judged)
        return make_header(task, children=condition.children, **_options(protocol, condition))
    except TypeError as error:
        raise ProtocolError(f"{protocol.name}: condition {condition.name!r}: {error}") from None


def run_protocol(
    file: str | os.PathLike[str] | Protocol,
    *,
    log_dir: str | os.PathLike[str] | None = None,
    at_once: int | None = None,
    **options: Unpack[SessionOptions],
) -> Logs:
    """Makes the missing runs of a protocol, and continues those that were begun.

    Args:
        file: A TOML file, the name of a shipped protocol, or a protocol.
        log_dir: Folder of its logs; None: logs/local/NAME.
        at_once: Runs under way at most; None: as many as calls in flight.
        **options: `settings`, how the session works, or fields of it.

    Raises:
        ProtocolError: It is not understood, a task is another one, or a log is of another run.
        LogError: A log in the folder is damaged or busy.
    """
    protocol = file if isinstance(file, Protocol) else load_protocol(file)
    check_options(SessionOptions, options)
    settings = settings_of(options)
    jobs = jobs_of(protocol, log_dir)
    if not jobs:
        raise ProtocolError(f"{protocol.name}: the runs that its forks leave are not there yet")
    jobs[0].path.parent.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        log = _begun(job.path)
        if log is not None and (other := differences(log.header, job.header)):
            what = f"is no run of this protocol: {', '.join(other)} differ"
            raise ProtocolError(f"{log.path}: {what}; give another folder for its logs")
    jobs = [job for job in jobs if not _packed(job.path).exists()]
    with open_resources(settings, Control()) as resources:
        runs = at_once or settings.max_concurrent
        done = run_jobs(jobs, resources, label=protocol.name, at_once=runs)
    return Logs(each.log for each in done if each.log is not None)


def state_cost(protocol: Protocol, logs: Mapping[str, Sequence[Log]] | None = None) -> str:
    """Describes what a protocol costs, and how much of it is left.

    Args:
        protocol: The protocol.
        logs: The logs of each condition, as `logs_of` returns them (default: none).

    Returns:
        A few lines: calls in all, made and left; tokens and dollars of those left.

    Example:
        >>> protocol = evo.protocols.load_protocol("local-tsp")
        >>> evo.protocols.state_cost(protocol).partition(" (")[0]
        'local-tsp'
    """
    known = [log for each in (logs or {}).values() for log in each]
    made, estimate = sum(map(_paid, known)), protocol.estimate
    title = f"{protocol.name} ({protocol.digest[:12]}): {protocol.title}"
    if (left := protocol.calls - made) <= 0:
        return f"{title}\n{protocol.calls} calls: all were made"
    prompt, completion = left * estimate.prompt_tokens, left * estimate.completion_tokens
    header = known[0].header if known else _header(protocol, protocol.conditions[0])
    models = [each.model for each in header.models] or [header.model]  # of several, the dearest
    prices = [float(price_of_tokens(prompt, 0.0, completion, model=each)) for each in models]
    dollars = math.nan if any(map(math.isnan, prices)) else max(prices)
    lines = [
        title,
        f"{protocol.calls} calls: {made} were made, {left} are left: about "
        f"{prompt:,.0f} prompt and {completion:,.0f} completion tokens, "
        + ("dollars unknown" if math.isnan(dollars) else f"{dollars:.2f} dollars"),
    ]
    if estimate.basis:
        lines.append(f"estimated from: {estimate.basis}")
    if estimate.calls_per_hour:
        hours = left / estimate.calls_per_hour
        lines.append(f"at {estimate.calls_per_hour:g} calls an hour: {hours:.1f} hours")
    return "\n".join(lines)


def _paid(log: Log) -> int:
    return sum(not outcome.inherited for outcome in log.outcomes)


def logs_of(
    protocol: Protocol, folder: str | os.PathLike[str] | None = None
) -> dict[str, list[Log]]:
    """Returns the logs that were begun for a protocol.

    Args:
        protocol: The protocol.
        folder: The folder of its logs (default: logs/local/NAME).

    Returns:
        The logs by condition; a condition without a run has an empty list.

    Example:
        >>> protocol = evo.protocols.load_protocol("local-tsp")
        >>> evo.protocols.logs_of(protocol, new(""))["deep"]
        []
    """
    place = LOCAL / protocol.name if folder is None else as_path("folder", folder)
    found: dict[str, list[Log]] = {}
    for condition in protocol.conditions:
        copies = [f"-c{k}" for k in range(condition.copies)] if condition.forks else [""]
        stems = [f"{condition.name}-s{seed}{copy}" for seed in condition.numbers for copy in copies]
        begun = [_begun(place / f"{stem}.jsonl") for stem in stems]
        own = (protocol.digest, condition.name)
        found[condition.name] = [
            log for log in begun if log and (log.header.protocol, log.header.condition) == own
        ]
    return found


def _packed(path: Path) -> Path:
    """Returns the path of a log after compression."""
    return path.with_name(f"{path.name}.gz")


def _begun(path: Path) -> Log | None:
    packed = _packed(path)
    return read_begun(packed if packed.exists() else path)
