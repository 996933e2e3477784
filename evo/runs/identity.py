"""What identifies a run: which headers describe one run, and how it goes on as it was begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import msgspec

from evo.capture.running import restated, short_hash
from evo.capture.state import changed_names
from evo.filters.registry import KIND as FILTER_KIND
from evo.logs.hashes import changed_parts
from evo.logs.log import Log
from evo.logs.records import SCHEMA, Header, Model, TaskRecord
from evo.models.offline import OFFLINE_MODELS
from evo.searches.registry import KIND as SEARCH_KIND
from evo.tasks.task import as_stated_now


def identity(header: Header) -> Header:
    """Returns a header without what does not identify its run.

    The software's versions, the number of the schema, where the model is served and at what price,
    the source of shipped searches and filters, and the task's notes may differ. A model at an
    address is not the built-in one, whatever its name.
    """
    elsewhere = ("base_url", "key_variable", "input_price", "cached_price", "output_price")

    def bare(model: Model) -> Model:
        plain = dict.fromkeys((*elsewhere, "context") if model.filled else elsewhere)
        if model.name in OFFLINE_MODELS and not _is_built_in(model):
            plain["version"] = None
        return msgspec.structs.replace(model, **plain, source="", filled="")

    plain = msgspec.structs.replace(
        header,
        schema=SCHEMA,
        task=as_stated_now(header.task).judged,
        versions={},
        search=header.search and SEARCH_KIND.identity(header.search),
        filters=tuple(FILTER_KIND.identity(each) for each in header.filters),
    )
    return _with_models(plain, bare)


def as_begun(header: Header, log: Log | None) -> Header:
    """Returns the header of a run that continues a log: its task and all versions are the log's."""
    if log is None:
        return header
    logged, task = log.header, log.header.task
    if header.task.function is not None:
        task = task.evaluated_by(*header.task.functions)
    search = header.search and logged.search and SEARCH_KIND.begun(header.search, logged.search)
    filters = tuple(map(FILTER_KIND.begun, header.filters, logged.filters))
    return msgspec.structs.replace(
        header, task=task, schema=logged.schema, prompt_version=logged.prompt_version,
        mixture_version=logged.mixture_version, search=search, filters=filters,
    )  # fmt: skip


def _unversioned(header: Header) -> Header:
    """Returns a header without the versions in which a log that is older goes on."""
    search = header.search and SEARCH_KIND.unversioned(header.search)
    filters = tuple(map(FILTER_KIND.unversioned, header.filters))
    return msgspec.structs.replace(
        header, prompt_version=0, mixture_version=0, search=search, filters=filters
    )


def _with_models(header: Header, change: Callable[[Model], Model]) -> Header:
    """Returns a header with its model changed, and those of its critic and of several alike."""
    critic = header.critic
    if critic is not None:
        critic = msgspec.structs.replace(critic, model=change(critic.model))
    models = tuple(
        msgspec.structs.replace(each, model=change(each.model)) for each in header.models
    )
    asks = header.asks
    if asks is not None:
        asks = msgspec.structs.replace(asks, model=change(asks.model))
    return msgspec.structs.replace(
        header, model=change(header.model), models=models, critic=critic, asks=asks
    )


def differences(one: Header, other: Header) -> list[str]:
    """Returns the fields in which two headers describe different runs.

    Of their models only what is asked counts: name, id, extra fields and version. The versions of
    prompts, of the choice among models, and of shipped searches and filters may differ: a log goes
    on as it was begun.
    """

    def named(was: Model) -> Model:
        return Model(
            name=was.name, id=was.id or was.name, extra_body=was.extra_body, version=_version(was)
        )

    def same(name: str) -> bool:
        mine, theirs = getattr(one, name), getattr(other, name)
        # What was written as a tuple comes back from a log as a list.
        return mine == theirs or _canonical(mine) == _canonical(theirs)

    one, other = (_with_models(_unversioned(identity(each)), named) for each in (one, other))
    return [name for name in one.__struct_fields__ if not same(name)]


def differing(there: Header, here: Header, ignored: Set[str] = frozenset()) -> str:
    """Returns in words how the run of a log differs from another one; empty: not at all.

    Args:
        there: What the log holds.
        here: The other run.
        ignored: Fields that may differ.
    """
    parts = []
    for name in differences(there, here):
        if name in ignored:
            continue
        if name == "task" and (changed := changed_parts(there.task, here.task)):
            words = [f"{each}{_named_in(each, there.task, here.task)}" for each in changed]
            parts.append(f"{' and '.join(words)} of the task {here.task.name} changed")
            continue
        if name == "model" and there.model.source and there.model.name == here.model.name:
            changed = changed_names(there.model.source, here.model.source)
            parts.append(_changed_model(here.model.name, changed))
            continue
        one, other = (_shown(getattr(each, name)) for each in (there, here))
        placed = _is_built_in(there.model) != _is_built_in(here.model)
        if name == "model" and one == other and placed:
            one, other = (_placed(each.model) for each in (there, here))
        parts.append(f"{name} {one} there, {other} here" if one != other else f"{name} differs")
    return "; ".join(parts)


def other_model(log: Log, header: Header) -> str:
    """Returns in words that a log goes on with another model than it was made with last; or "".

    Args:
        log: The log.
        header: What its further generations are made under.
    """
    last = next((each.model for each in reversed(log.sessions) if each.model), log.header.model)
    there = msgspec.structs.replace(log.header, model=last)
    if not {"model", "models", "critic", "asks"} & {*differences(there, header)}:
        return ""
    one, other = there.model_name, header.model_name
    if one != other:
        return f"{log.path}: it was made with the model {one!r} and goes on with {other!r}"
    if _is_built_in(there.model) != _is_built_in(header.model):
        placed, now = (_placed(each.model) for each in (there, header))
        return f"{log.path}: it was made with the model {placed} and goes on with {now}"
    if None in (last.version, header.model.version) and last.id == header.model.id:
        return ""  # a function that was given a name, by which alone it is known
    changed = changed_names(last.source, header.model.source) if last.source else []
    what = f" ({', '.join(changed)} changed)" if changed else ""
    return f"{log.path}: it goes on with another version of the model {one!r} than before{what}"


def _is_built_in(model: Model) -> bool:
    """Whether a model is a stand-in in this process, and none of its name at some address."""
    return model.name in OFFLINE_MODELS and model.base_url is None


def _placed(model: Model) -> str:
    """Returns a model and where it is, in words."""
    if _is_built_in(model):
        return f"{model.name!r} that is built in"
    return repr(model.name) if model.base_url is None else f"{model.name!r} at {model.base_url}"


def _changed_model(name: str, changed: Sequence[str]) -> str:
    """Returns in words what changed of a function that is a model, or of what it uses."""
    others = ", ".join(each for each in changed if each != name)
    if not others:
        return f"the code of the model {name} changed"
    if name in changed:
        return f"the code of the model {name}, and {others}, which it uses, changed"
    return f"{others}, which the model {name} uses, changed"


def _named_in(file: str, there: TaskRecord, here: TaskRecord) -> str:
    """Returns in words which functions and constants of a file changed; empty: that is unknown."""
    texts = [each.files.get(file, "") for each in (there, here)]
    changed = changed_names(*texts) if file.endswith(".py") else []
    return f" ({', '.join(changed)})" if changed else ""


def _shown(value: object) -> str:
    if isinstance(value, TaskRecord):
        return f"{value.name} {value.hash[:12]}"
    name = getattr(value, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value).items()
        return "(" + ", ".join(f"{key} {_shown(each)}" for key, each in fields) + ")"
    if isinstance(value, tuple) and value:
        return ", ".join(map(_shown, value))
    return f"{value!r:.60}"


def _version(model: Model) -> str | None:
    """Returns the version of a model; of a function in an old log, what it would be today."""
    text = restated(model.version) if model.way == "function" else None
    return model.version if text is None else short_hash(text)


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")
