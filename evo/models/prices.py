"""Prices and context windows of models that others keep track of: the data of `genai-prices`.

They fill in what a model does not state itself, and are loaded only then. The data come with that
package; nothing is fetched.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from evo.logs.records import Model

_PRICES = {
    "input_price": "input_mtok",
    "cached_price": "cache_read_mtok",
    "output_price": "output_mtok",
}


def with_prices(model: Model) -> Model:
    """Returns a model with its prices and its context, as far as the data know them.

    They are those of the provider at its base URL (or of the environment's), else of the model's
    maker. Nothing is filled in where the address is one that the data do not know, since another
    host has other prices. Prices that grow with the length of a prompt are those of short ones.
    """
    prices = [getattr(model, name) for name in _PRICES]
    if not model.is_llm or model.way == "function" or all(p is not None for p in prices):
        return model
    url = model.base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("LLM_API_BASE")
    if model.client_object is not None:
        url = str(model.client_object.base_url)
    found = _listed(model.id or model.name, url or None)
    if found is None:
        return model
    fields, filled = found
    if model.input_price is not None or model.output_price is not None:
        fields = {name: value for name, value in fields.items() if name == "context"}
    missing = {name: v for name, v in fields.items() if getattr(model, name) is None}
    return model.but(**missing, filled=filled) if missing else model


@cache
def _listed(name: str, url: str | None) -> tuple[dict[str, float | int], str] | None:
    """Returns what the data know of a model at an address, and what that is of."""
    if url is not None and not _is_public(url):
        return None
    try:
        from genai_prices import data_snapshot
    except ModuleNotFoundError:  # then a price is unknown, as that of any other model
        return None
    try:
        provider, info = data_snapshot.get_snapshot().find_provider_model(name, None, None, url)
    except LookupError:
        return None
    listed = info.get_prices(datetime.now(UTC))
    fields: dict[str, float | int] = {}
    tiered = False
    for ours, theirs in _PRICES.items():
        price: Any = getattr(listed, theirs, None)
        tiered |= hasattr(price, "base")
        if price is not None:
            fields[ours] = float(getattr(price, "base", price))
    if info.context_window is not None:
        fields["context"] = info.context_window
    base = ", prices of short prompts" if tiered else ""
    return fields, f"genai-prices {version('genai-prices')}: {provider.id}, {info.id}{base}"


def _is_public(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return "." in host and not host.replace(".", "").isdigit()
