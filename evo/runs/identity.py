"""What identifies a run: which headers describe one run, and how it goes on as it was begun."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from evo.filters.registry import KIND as FILTER_KIND
from evo.logs.log import Log
from evo.logs.records import SCHEMA, Header, Model
from evo.searches.registry import KIND as SEARCH_KIND


def identity(header: Header) -> Header:
    """Returns a header without what does not identify its run.

    The software's versions, the number of the schema, where the model is served and at what price,
    the source of shipped searches and filters, and the task's notes may differ.
    """
    elsewhere = ("base_url", "key_variable", "input_price", "cached_price", "output_price")

    def bare(model: Model) -> Model:
        plain = dict.fromkeys((*elsewhere, "context") if model.filled else elsewhere)
        return msgspec.structs.replace(model, **plain, source="", filled="")

    plain = msgspec.structs.replace(
        header,
        schema=SCHEMA,
        task=header.task.judged,
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
            name=was.name, id=was.id or was.name, extra_body=was.extra_body, version=was.version
        )

    def same(name: str) -> bool:
        mine, theirs = getattr(one, name), getattr(other, name)
        # What was written as a tuple comes back from a log as a list.
        return mine == theirs or _canonical(mine) == _canonical(theirs)

    one, other = (_with_models(_unversioned(identity(each)), named) for each in (one, other))
    return [name for name in one.__struct_fields__ if not same(name)]


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")
