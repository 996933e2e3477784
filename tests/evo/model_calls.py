"""One call of a model, and what an endpoint answers it."""

from __future__ import annotations

import contextlib
from typing import Any

from evo.models.client import Call, ModelClient
from evo.models.limits import Slots
from evo.models.registry import find_model, resolve_sampling

MESSAGES = [{"role": "user", "content": "hello"}]
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    ],
    "usage": USAGE,
}


def ask(given: Any, **how: Any) -> Call:
    """One call of a model."""
    model = find_model(given)
    sampling = resolve_sampling(model, **how.pop("sampling", {}))
    how = {"slots": Slots(4), "back_off": 0.01, "timeout": 5.0, **how}
    with contextlib.closing(ModelClient(model, sampling, **how)) as client:
        return client.call(MESSAGES, seed=7)
