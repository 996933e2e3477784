"""What is known of models, by name: the shipped table, and a user's own."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from evo.logs import examples
from evo.logs.cost import MOST_TOKENS
from evo.logs.inputs import as_float
from evo.logs.records import Header, Model, Sampling
from evo.models.functions import model_of, required, with_source
from evo.models.prices import with_prices
from evo.plugins import loaded, meant, plugged_in
from evo.warning import warn

FILE_VARIABLE = "EVO_MODELS"
USER_FILE = Path("~/.config/evo/models.toml")
_LEAST = {"input_price": 0, "cached_price": 0, "output_price": 0}  # dollars
_LEAST |= {"active_parameters": 1, "context": 1}
_EXAMPLE = examples.minimal(examples.MODELS)
ADDRESSES = ("OPENAI_BASE_URL", "LLM_API_BASE")
"""Environment variables that say where models are."""

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
    for name, model in loaded(plugged_in("evo.models")).items():
        if isinstance(model, Model):
            models[model.name] = model
        else:
            warn(
                f"{name!r} of evo.models is left out: expected an evo.Model, got {model!r:.80}; "
                "mend or uninstall the package that adds it",
                RuntimeWarning,
            )
    path = Path(os.environ.get(FILE_VARIABLE) or USER_FILE).expanduser()
    if os.environ.get(FILE_VARIABLE) or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"cannot read the file of models {str(path)!r}: {error}") from None
        models |= _parse(text, str(path))
    return models


Given = str | Model | Callable[..., object]
"""What names a model: its name, the model itself, or a function that answers."""


def find_model(model: Given, base_url: str | None = None) -> Model:
    """Returns a model with its price and context as far as they are known.

    Args:
        model: Its name, the model itself, or a function that answers.
        base_url: Where it is asked, in place of where it would be.

    Raises:
        ModelError: The name is unknown, and nothing says where it is; the error explains how to add
            it. A name that is unknown goes wherever the user has said.
    """
    found = _found(model, base_url)
    if base_url is not None:
        if found.way != "endpoint":
            raise ModelError(f"base_url: the model {found.name!r} is a {found.way}")
        found = msgspec.structs.replace(found, base_url=base_url)
    return with_prices(found)


def _found(model: Given, base_url: str | None) -> Model:
    if isinstance(model, Model):
        return model if model.function is None else with_source(model)
    if not isinstance(model, str):
        if callable(model) and not isinstance(model, type):
            return model_of(model)
        client = "; a client object is passed as evo.Model('its model', client=...)"
        raise ModelError(
            f"model: expected a name, evo.Model(...) or a function f(messages), got {model!r:.80}"
            + (client if hasattr(model, "chat") else "")
        )
    known = load_models()
    if (name := model if model in known else ALIASES.get(model, model)) in known:
        return known[name]
    if base_url is not None or _is_pointed_at():
        return Model(name=model)
    path = Path(os.environ.get(FILE_VARIABLE) or USER_FILE).expanduser()
    table = [f"[{json.dumps(model)}]", 'base_url = "http://host:8000/v1"']
    raise ModelError(
        f"unknown model {model!r}{meant(model, [*known, *ALIASES])};\n"
        f"known: {', '.join([*known, *ALIASES])}.\n"
        f"To add it, put these lines at the end of {path}:\n"
        f"    {table[0]}\n"
        f"    {table[1]}\n"
        f"or pass evo.Model({model!r}, base_url=...), or say where it is (--base-url, "
        "OPENAI_BASE_URL), or have a shell "
        f"append its table to {path}: mkdir -p {shlex.quote(str(path.parent))} && "
        f"printf '%s\\n' {shlex.join(table)} >> {shlex.quote(str(path))}"
    )


def own_model(
    logged: Model,
    path: object,
    given: Given | None = None,
    base_url: str | None = None,
    *,
    alone: bool = False,
) -> Model:
    """Returns the user's own model that the calls of a log may go to; `alone`: it has no other.

    Endpoint, key, id and extra fields in a log are only information: a call goes where the
    user's registry (or `given`), the environment or a flag points; a log that differs, or
    names a model that the user has not, is a ModelError.
    """
    if given is not None or base_url is not None:
        return find_model(logged.name if given is None else given, base_url)
    own = load_models().get(logged.name)
    if logged.way != "endpoint":
        if own is None or own.way != logged.way:
            raise ModelError(f"{path}: {logged.missing}")
        return find_model(own)
    if own is None and _is_pointed_at():
        own = Model(name=logged.name)
    states = {n: v for n in _POINTING if (v := getattr(logged, n)) is not None}
    resume = f"evo resume {shlex.quote(str(path))}"
    command = f"{resume} --model {shlex.quote(logged.name)}"
    there = ""
    if alone and logged.base_url is not None:
        there = f"go on there with `{resume} --base-url {shlex.quote(logged.base_url)}`, "
    if own is None:
        raise ModelError(
            f"{path}: its model {logged.name!r} ({_fields(states)}) is not among your models, and "
            f"a log does not decide where calls go: {there}or add [{json.dumps(logged.name)}] "
            f"to {USER_FILE} and go on with `{command}`, or name another of `evo models`"
        )
    yours = {n: getattr(own, n) for n in _POINTING} | {"id": own.id or own.name}
    if any(yours[name] != value for name, value in states.items()):
        raise ModelError(
            f"{path}: its model {logged.name!r} has {_fields(states)}, yours has {_fields(yours)}; "
            f"a log does not decide where calls go: {there}or with yours, `{command}`"
        )
    return with_prices(own)


def own_models(
    header: Header,
    path: object,
    given: Given | Sequence[Given] | None = None,
    base_url: str | None = None,
) -> Header:
    """Returns a log's header with the user's own models, a critic's too; see `own_model`.

    A model that is given takes the place of the one of its name; one of another name that of the
    run's only model, whose address is `base_url`, if that is given.
    """
    if base_url is not None and header.models:
        raise ModelError(
            f"{path}: base_url: it asks {header.model_name}, each at an address of its own: give "
            "these as models"
        )
    named = _given_by_name(header, path, given)

    def mine(logged: Model) -> Model:
        return own_model(logged, path, named.get(logged.name))

    first = own_model(
        header.model, path, named.get(header.model.name), base_url, alone=not header.models
    )
    models = tuple(msgspec.structs.replace(e, model=mine(e.model)) for e in header.models)
    asks, critic = header.asks, header.critic
    if asks is not None:
        asks = msgspec.structs.replace(asks, model=mine(asks.model))
    if critic is not None:
        try:
            critic = msgspec.structs.replace(critic, model=mine(critic.model))
        except ModelError:
            if critic.model.way != "endpoint":
                raise
            raise ModelError(
                f"{path}: the model of its critic, {critic.model.name!r}, is not as yours of "
                f"that name; a log does not decide where calls go: add or change it in {USER_FILE}"
            ) from None
    return msgspec.structs.replace(header, model=first, models=models, asks=asks, critic=critic)


def _given_by_name(
    header: Header, path: object, given: Given | Sequence[Given] | None
) -> dict[str, Model]:
    """Returns the models that were given, by the names of those whose place they take."""
    alone = not isinstance(given, Sequence) or isinstance(given, str)
    listed = _listed(given)
    named = {each.name: each for each in map(find_model, listed)}
    others = [*header.models, *(each for each in (header.critic, header.asks) if each is not None)]
    used = {header.model.name, *(each.model.name for each in others)}
    if alone and listed and not named.keys() & used and not header.models:
        return {header.model.name: find_model(listed[0])}
    if (unknown := named.keys() - used) or (header.models and isinstance(given, str)):
        if header.models:
            words = f"{path}: it asks {header.model_name}; a log goes on with all of these"
            raise ModelError(words)
        raise ModelError(
            f"{path}: model: expected some of {', '.join(sorted(used))}, got {', '.join(unknown)}"
        )
    return named


def _listed(given: Given | Sequence[Given] | None) -> Sequence[Given]:
    if given is None:
        return ()
    return given if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _is_pointed_at() -> bool:
    """Whether the environment says where models are that nobody knows."""
    return any(map(os.environ.get, ADDRESSES))


def _fields(states: dict[str, object]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in states.items() if value) or "nothing"


def resolve_sampling(
    model: Model,
    *,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
) -> Sampling:
    """Returns sampling settings, the model's defaults where None; ValueError: out of range.

    A function has its own defaults, which nobody knows: what it need not be passed stays None.
    """
    if model.way == "function" and model.function is None:
        raise ModelError(model.missing)
    if model.function is not None:
        given = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        asked = required(model.function)
        passed = resolve_sampling(
            msgspec.structs.replace(model, way="endpoint"),
            temperature=temperature, top_p=top_p, max_tokens=max_tokens,
        )  # fmt: skip
        unknown = [name for name, value in given.items() if value is None and name not in asked]
        return msgspec.structs.replace(passed, **dict.fromkeys(unknown))
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
    own = {"name", "way", "source", "filled", "call", "client", "share"}
    allowed = [*(each for each in Model.__struct_fields__ if each not in own), "omit"]
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
