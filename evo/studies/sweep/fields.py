"""The fields of a configuration by name, and the header that their values make."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TypeVar, get_args

import msgspec

from evo.logs.inputs import as_float, at_least, limits_of
from evo.logs.records import Header, Limits, Model
from evo.logs.types import Fields, JsonObject
from evo.models.registry import find_model
from evo.policies import PolicyClass, find_policy
from evo.policies.rewards import find_reward
from evo.runs.configuration import make_header
from evo.runs.identity import identity
from evo.runs.options import VariedOptions
from evo.runs.settings import Goal
from evo.runs.signatures import entries
from evo.tasks.task import Task, load_task

GENERATIONS, ARMS, ROUNDS = 8, 10, 64  # defaults, as in the verbs

POOL = {"policy": object, "arms": int, "rounds": int, "reward": str}
"""What makes an allocation of a configuration: see `evo.allocate_live`, whose defaults hold."""

FIRST_SOURCES = {
    ("best_of_n", 1): "35bf4140c7ef2705f96d593703755808dcbc12bcde40cd71ea1f20f34213bea2",
    ("population", 1): "87f844890fb9b75c2deb7c08377d43b2154a73e9f057592f497cc41ad5a59ad0",
    ("islands", 1): "8ce6bd6f03f7da30be6cb22abd6efae972143f9736d54d7c641f8b0de3c6a93c",
}
"""The source hashes in hashes of configurations, by name and version of a shipped search."""

R = TypeVar("R", bound=msgspec.Struct)


@functools.cache
def known_fields() -> dict[str, bool]:
    """Returns every field that can be swept, and whether it takes whole numbers.

    `task`, `generations` and `VariedOptions`;
    `sampling.temperature` and so on mean the same as `temperature`; `limits.seconds` and
    `model.extra_body` reach into an evaluation's limits, which may be a table as well, and into the
    model. Where there is a `policy`, a name or {"name": ..., and its parameters}, it spends
    `rounds` over `arms`.
    """
    types = {"task": str} | {name: kind for name, kind, _ in entries(VariedOptions)}
    types |= {f"sampling.{name}": types[name] for name in ("temperature", "top_p", "max_tokens")}
    types |= {f"limits.{field.name}": field.type for field in msgspec.structs.fields(Limits)}
    types |= {"generations": int, "model.extra_body": dict, **POOL}
    return {name: type_ is int or int in get_args(type_) for name, type_ in sorted(types.items())}


def canonical(name: str) -> str:
    """Returns the one name of a field that has two."""
    return name.removeprefix("sampling.")


def dotted(table: Fields) -> JsonObject:
    """Returns fields in which a table of limits or of sampling is one field for each of its own.

    So `{"limits": {"seconds": 5}}`, as runs take it, is `limits.seconds`.
    """
    found: JsonObject = {}
    for key, given in table.items():
        value = msgspec.structs.asdict(given) if isinstance(given, Limits) else given
        if (
            isinstance(value, Mapping)
            and (key in ("sampling", "limits") or (key == "model" and set(value) == {"extra_body"}))
            and not value.keys() & {"values", "min", "max"}  # of a space
        ):
            found |= {f"{key}.{inner}": each for inner, each in value.items()}
        elif key != "limits" or value is not None:
            found[key] = value
    return found


@dataclass(frozen=True)
class Configuration:
    """The configuration of one set of values.

    `run` is the hash of what identifies its runs but the seed: configurations that differ in their
    goal alone share it, and by the prefix property their logs.
    """

    header: Header  # of its runs, with seed 0
    goal: Goal  # of each run; of an allocation T is its rounds
    run: str
    id: str  # hash of all
    pool: Fields = field(default_factory=dict)  # of an allocation: the fields of POOL

    @property
    def generations(self) -> int:
        """T; of an allocation its rounds."""
        return self.goal.generations

    def arms(self, seed: int) -> list[Header]:
        """Returns the runs of an allocation: seeds that no other one of as many arms has."""
        count = self.pool["arms"]
        return [msgspec.structs.replace(self.header, seed=seed * count + k) for k in range(count)]

    def find_policy(self) -> PolicyClass:
        """Returns the policy of an allocation."""
        named = self.pool["policy"]
        parameters = dict(named) if isinstance(named, Mapping) else {"name": named}
        return find_policy(parameters.pop("name", ""), **parameters)


def configuration_of(header: Header, goal: Goal, pool: Fields | None = None) -> Configuration:
    """Returns the configuration of a header and a goal, or of an allocation."""
    run = short_hash(_as_first_hashed(identity(header)))
    ends = {"target": goal.target, "patience": goal.patience}
    given = {name: value for name, value in ends.items() if value is not None}
    id_ = short_hash([run, pool or goal.generations, *([given] if given else [])])
    if not pool:
        return Configuration(header, goal, run, id_)
    made = Configuration(header, goal, run, id_, pool)
    made.find_policy()  # raises where there is none
    if pool["reward"] is not None:
        find_reward(pool["reward"])
    return made


def _as_first_hashed(header: Header) -> Header:
    """Returns a header as the first versions hashed it, so that their folders go on.

    They knew one schema, and their records of shipped searches held a hash of the source.
    """
    search = header.search
    if search is not None and not search.source:
        source = FIRST_SOURCES.get((search.name, search.version), "")
        search = msgspec.structs.replace(search, source=source)
    return msgspec.structs.replace(header, schema=1, search=search)


Here = Mapping[tuple[str, str | None], Model]
"""Models that are functions or client objects of this process, by their name and version."""


def configure(values: Fields, tasks: Mapping[str, Task], here: Here | None = None) -> Configuration:
    """Returns the configuration of some values; `task` is one of `tasks`, or is loaded."""
    here = here or {}
    plain = {canonical(name): value for name, value in dotted(values).items()}
    task = tasks.get(str(plain["task"])) or load_task(plain["task"])
    pool = {name: plain.pop(name) for name in POOL if name in plain}
    if pool.get("policy") is None:
        if pool.keys() - {"policy"}:
            raise ValueError(f"{', '.join(pool)}: an allocation's, which needs a policy")
    else:
        if "generations" in plain:
            raise ValueError("generations: an allocation has rounds; leave it out beside a policy")
        pool = {**pool, "reward": pool.get("reward")}
        pool |= {
            n: at_least(n, pool.get(n, most), 1) for n, most in (("arms", ARMS), ("rounds", ROUNDS))
        }
        plain["generations"] = pool["rounds"]
    goal = _goal(plain)
    if isinstance(models := plain.get("models"), list | tuple):
        if part := next((name for name in plain if name.startswith("model.")), None):
            raise ValueError(f"{part}: reaches into `model`; give it within each of `models`")
        plain["models"] = [_model(each, here) for each in models]
    known = _replaced(_model(plain.pop("model", "offline"), here), "model.", plain)
    if isinstance(plain.get("critic"), Mapping):
        plain["critic"] = _model(plain["critic"], here)
    limited = {k.removeprefix("limits."): v for k, v in plain.items() if k.startswith("limits.")}
    limits = limits_of(plain.pop("limits", limited), task.limits)
    rest = {name: value for name, value in plain.items() if name != "task" and "." not in name}
    header = make_header(task, model=known, limits=limits, **rest)
    return configuration_of(header, goal, pool if pool.get("policy") else None)


def _goal(values: JsonObject) -> Goal:
    """Takes the goal out of values by name."""
    patience, target = values.pop("patience", None), values.pop("target", None)
    return Goal(
        at_least("generations (T)", values.pop("generations", GENERATIONS), 1),
        as_float(target) if isinstance(target, Real) else target,
        None if patience is None else at_least("patience", patience, 1),
    )


def _model(model: object, here: Here) -> Model:
    """Returns the model of a name, or of its fields."""
    if isinstance(model, Mapping):
        found = msgspec.convert(model, Model)
        return here.get((found.name, found.version), found)
    return find_model(model)  # type: ignore[arg-type]  # which says what it expects


def _replaced(struct: R, prefix: str, values: Fields) -> R:
    """Returns a struct with the fields that the values name, types checked."""
    changed = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
    if not changed:
        return struct
    try:
        found = msgspec.convert({**msgspec.structs.asdict(struct), **changed}, type(struct))
    except msgspec.ValidationError as error:
        raise ValueError(f"{prefix}{next(iter(changed))}: {error}") from None
    if isinstance(struct, Model):  # its function or client is no field
        found.__dict__.update(struct.__dict__)
    return found


def short_hash(value: object) -> str:
    """Returns twelve hex digits of the SHA-256 of plain values."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:12]
