"""The fields of a configuration by name, and the header that their values make."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from evo.configuration import at_least, identity, make_header
from evo.llm.registry import find_model
from evo.records import Header, Limits, Model
from evo.task import Task, load_task

Values = Mapping[str, Any]
"""Values of fields by name."""

GENERATIONS = 8  # where nothing says otherwise, as in `evo.run`

R = TypeVar("R", bound=msgspec.Struct)


@functools.cache
def known_fields() -> dict[str, bool]:
    """Returns every field that can be swept, and whether it takes whole numbers.

    `task`, `generations` and the arguments of `make_header` but the seed and the protocol;
    `sampling.temperature` and so on mean the same as `temperature`; `limits.seconds` and
    `model.extra_body` reach into an evaluation's limits and into the model.
    """
    types = {
        n: p.annotation for n, p in inspect.signature(make_header, eval_str=True).parameters.items()
    }
    for name in ("seed", "limits", "protocol", "condition"):
        del types[name]
    types |= {f"sampling.{name}": types[name] for name in ("temperature", "top_p", "max_tokens")}
    types |= {f"limits.{field.name}": field.type for field in msgspec.structs.fields(Limits)}
    types |= {"generations": int, "model.extra_body": dict}
    return {name: type_ is int or int in get_args(type_) for name, type_ in sorted(types.items())}


def canonical(name: str) -> str:
    """Returns the one name of a field that has two."""
    return name.removeprefix("sampling.")


@dataclass(frozen=True)
class Configuration:
    """What one set of values comes to.

    Attributes:
        header: Of its runs, with seed 0.
        generations: T.
        run: Hash of what identifies its runs but the seed; configurations that differ in T alone
            share it, and by the prefix property their logs.
        id: Hash of all.
    """

    header: Header
    generations: int
    run: str
    id: str


def configuration_of(header: Header, generations: int) -> Configuration:
    """Returns the configuration of a header and T."""
    # Without the number of the schema, so that folders of earlier versions go on.
    run = short_hash(msgspec.structs.replace(identity(header), schema=1))
    return Configuration(header, generations, run, short_hash([run, generations]))


def configure(values: Values, tasks: Mapping[str, Task]) -> Configuration:
    """Returns the configuration of some values; `task` is one of `tasks`, or is loaded."""
    plain = {canonical(name): value for name, value in values.items()}
    task = tasks.get(str(plain["task"])) or load_task(plain["task"])
    generations = at_least("generations (T)", plain.pop("generations", GENERATIONS), 1)
    model = plain.pop("model", "offline")
    known = msgspec.convert(model, Model) if isinstance(model, Mapping) else find_model(model)
    known = _replaced(known, "model.", plain)
    limits = _replaced(task.limits, "limits.", plain)
    rest = {name: value for name, value in plain.items() if name != "task" and "." not in name}
    return configuration_of(make_header(task, model=known, limits=limits, **rest), generations)


def _replaced(struct: R, prefix: str, values: Values) -> R:
    """Returns a struct with the fields that the values name, types checked."""
    changed = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
    if not changed:
        return struct
    try:
        return msgspec.convert({**msgspec.structs.asdict(struct), **changed}, type(struct))
    except msgspec.ValidationError as error:
        raise ValueError(f"{prefix}{next(iter(changed))}: {error}") from None


def short_hash(value: Any) -> str:
    """Returns twelve hex digits of the SHA-256 of plain values."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:12]
