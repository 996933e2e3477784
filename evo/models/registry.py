"""What is known of models, by name: the shipped table, and a user's own."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from evo.logs import examples
from evo.logs.cost import MOST_TOKENS
from evo.logs.given import as_float
from evo.logs.records import Header, Model, Sampling
from evo.plugins import meant, plugged_in

FILE_VARIABLE = "EVO_MODELS"
USER_FILE = Path("~/.config/evo/models.toml")
_LEAST = {"input_price": 0, "cached_price": 0, "output_price": 0}  # dollars
_LEAST |= {"active_parameters": 1, "context": 1}
_EXAMPLE = examples.minimal(examples.MODELS)
_POINTING = ("base_url", "key_variable", "id", "extra_body")  # where calls go, and what they hold


ALIASES = {"llama-8b": "llama-3.1-8b"}
"""Other names of shipped models, as in the paper's code; a model of the user's comes first."""


class ModelError(ValueError):
    """An unknown model, or a mistake in a model's table."""


def load_models() -> dict[str, Model]:
    """Returns all known models by name: shipped, of installed packages, and the user's own.

    The latter are in the file that `EVO_MODELS` names, else in `~/.config/evo/models.toml`.
    """
    models = dict(_shipped())
    for name, model in plugged_in("evo.models").items():
        if not isinstance(model, Model):
            raise ModelError(f"entry point {name!r} of evo.models: not a Model: {model!r}")
        models[model.name] = model
    path = Path(os.environ.get(FILE_VARIABLE) or USER_FILE).expanduser()
    if os.environ.get(FILE_VARIABLE) or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"cannot read the file of models {str(path)!r}: {error}") from None
        models |= _parse(text, str(path))
    return models


def find_model(model: str | Model) -> Model:
    """Returns the model of a name; the error for an unknown name explains how to add it."""
    if isinstance(model, Model):
        return model
    known = load_models()
    if (name := model if model in known else ALIASES.get(model, model)) in known:
        return known[name]
    raise ModelError(
        f"unknown model {model!r}{meant(model, known)}\n"
        f"known: {', '.join(known)}\n"
        f"To add it, put this into {USER_FILE} (or a file that {FILE_VARIABLE} names):\n"
        f'    ["{model}"]\n'
        '    base_url = "http://host:8000/v1"    # left out: from OPENAI_BASE_URL\n'
        f"or pass evo.Model(name={model!r}, base_url=...)"
    )


def own_model(logged: Model, path: object, given: str | Model | None = None) -> Model:
    """Returns the user's own model that the calls of a log may go to.

    Endpoint, key, id and extra fields in a log are only information: a call goes where the
    user's registry (or `given`), the environment or a flag points; a log that differs, or
    names a model that the user has not, is a ModelError.
    """
    if given is not None:
        return find_model(given)
    own = load_models().get(logged.name)
    states = {n: v for n in _POINTING if (v := getattr(logged, n)) is not None}
    command = f"evo resume {shlex.quote(str(path))} --model {shlex.quote(logged.name)}"
    if own is None:
        raise ModelError(
            f"{path}: its model {logged.name!r} ({_fields(states)}) is not among your "
            f"models, and a log does not decide where calls go: add [{json.dumps(logged.name)}] "
            f"to {USER_FILE} and go on with `{command}`, or name another of `evo models`"
        )
    yours = {n: getattr(own, n) for n in _POINTING} | {"id": own.id or own.name}
    if any(yours[name] != value for name, value in states.items()):
        raise ModelError(
            f"{path}: its model {logged.name!r} has {_fields(states)}, yours has {_fields(yours)}; "
            f"a log does not decide where calls go: `{command}` goes on with yours"
        )
    return own


def own_models(header: Header, path: object, given: str | Model | None = None) -> Header:
    """Returns a log's header with the user's own models, a critic's too; see `own_model`."""
    own = msgspec.structs.replace(header, model=own_model(header.model, path, given))
    if given is not None and header.models:
        raise ModelError(f"{path}: it asks {header.model_name}; a log goes on with all of these")
    models = tuple(
        msgspec.structs.replace(each, model=own_model(each.model, path)) for each in header.models
    )
    asks = header.asks
    if asks is not None:
        asks = msgspec.structs.replace(asks, model=own_model(asks.model, path))
    own = msgspec.structs.replace(own, models=models, asks=asks)
    if (critic := header.critic) is None:
        return own
    try:
        scores = own_model(critic.model, path)
    except ModelError:
        raise ModelError(
            f"{path}: the model of its critic, {critic.model.name!r}, is not as yours of "
            f"that name; a log does not decide where calls go: add or change it in {USER_FILE}"
        ) from None
    return msgspec.structs.replace(own, critic=msgspec.structs.replace(critic, model=scores))


def _fields(states: dict[str, object]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in states.items() if value) or "nothing"


def resolve_sampling(
    model: Model,
    *,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
) -> Sampling:
    """Returns sampling settings, the model's defaults where None; ValueError: out of range."""
    temperature = as_float(model.temperature if temperature is None else temperature)
    top_p = as_float(model.top_p if top_p is None else top_p)
    max_tokens = model.max_tokens if max_tokens is None else max_tokens
    if not 0 <= temperature <= 2:
        raise ValueError(f"temperature: expected a number in [0, 2], got {temperature!r}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p: expected a number in (0, 1], got {top_p!r}")
    whole = isinstance(max_tokens, int) and not isinstance(max_tokens, bool)
    if not whole or not 1 <= max_tokens < MOST_TOKENS:
        raise ValueError(
            f"max_tokens: expected a whole number from 1 to below {MOST_TOKENS:g}, "
            f"got {max_tokens!r:.60}"
        )
    if model.context is not None and max_tokens >= model.context:
        raise ValueError(
            f"max_tokens: expected less than the context window of {model.name!r}, "
            f"{model.context}, so that a prompt fits, got {max_tokens!r}"
        )
    return Sampling(temperature=temperature, top_p=top_p, max_tokens=max_tokens)


@cache
def _shipped() -> Mapping[str, Model]:
    from evo.models.offline import OFFLINE_MODELS

    text = (files("evo.models") / "models.toml").read_text(encoding="utf-8")
    return {
        name: msgspec.structs.replace(model, version=OFFLINE_MODELS.get(name))
        for name, model in _parse(text, "models.toml").items()
    }


def _parse(text: str, source: str) -> dict[str, Model]:
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{source}: not TOML: {error}; {_EXAMPLE}") from None
    models = {}
    for name, table in tables.items():
        try:
            models[name] = _model(name, table)
        except (msgspec.ValidationError, ValueError) as error:
            raise ModelError(f"{source}: model {name!r}: {error}; {_EXAMPLE}") from None
    return models


def _model(name: str, table: object) -> Model:
    """Returns the model of a table; a ValueError states what is wrong with it."""
    if not isinstance(table, dict):
        raise ValueError(f'expected a table, written ["{name}"], got {table!r}')
    allowed = [*(each for each in Model.__struct_fields__ if each != "name"), "omit"]
    for key, value in table.items():
        if key not in allowed:
            dotted = f' (a name with dots needs quotes: ["{name}.{key}"])'
            hint = dotted if isinstance(value, dict) else ""
            raise ValueError(f"unknown key {key!r}{hint}; allowed: {', '.join(allowed)}")
    omit = table.get("omit", [])
    if not isinstance(omit, list) or not all(isinstance(item, str) for item in omit):
        raise ValueError(f"omit: expected a list of names of fields, got {omit!r}")
    fields = {key: value for key, value in table.items() if key != "omit"}
    model = msgspec.convert({"name": name, **fields}, Model)
    model = msgspec.structs.replace(model, extra_body=model.extra_body | dict.fromkeys(omit))
    resolve_sampling(model)
    for field, least in _LEAST.items():
        value = getattr(model, field)
        if value is not None and not least <= as_float(value) < float("inf"):
            raise ValueError(f"{field}: expected a number of at least {least}, got {value!r:.60}")
    return model
