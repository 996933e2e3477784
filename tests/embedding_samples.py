"""What embeds in tests: counts of hashed character n-grams, as a function and at an endpoint."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from endpoints import Endpoint, Handling, say

SIZE = 64


def grams(texts: Sequence[str]) -> list[list[float]]:
    """Counts trigrams by their hash; the first number is at least 1, whatever the text."""
    found = []
    for text in texts:
        counts = [1.0] + [0.0] * (SIZE - 1)
        for start in range(len(text) - 2):
            counts[zlib.crc32(text[start : start + 3].encode()) % SIZE] += 1.0
        found.append(counts)
    return found


def answer_of(texts: Sequence[str]) -> dict[str, Any]:
    """What an endpoint answers to some texts, with its usual usage."""
    data = [{"index": k, "embedding": each} for k, each in enumerate(grams(texts))]
    tokens = sum(map(len, texts)) // 4
    return {"data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def embedding_endpoint(
    refuses: Callable[[str], int | None] = lambda text: None,
    answer: Callable[[Sequence[str]], object] = answer_of,
) -> Endpoint:
    """An endpoint for embeddings; `refuses` gives the HTTP status of a text, None: it is embedded.

    It knows no other path.
    """

    def handle(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        if not handler.path.endswith("/v1/embeddings"):
            say(handler, 404, b"{}")
        elif (status := refuses(body["input"][0])) is not None:
            say(handler, status, json.dumps({"error": {"message": "not this text"}}).encode())
        else:
            say(handler, 200, json.dumps(answer(body["input"])).encode())

    handling: Handling = handle
    return Endpoint(handling)


def texts_of(server: Endpoint) -> list[str]:
    """The texts that an endpoint was asked for, in order."""
    return [text for body in server.requests for text in body["input"]]
