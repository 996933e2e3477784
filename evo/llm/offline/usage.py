"""Token counts of the offline model: a rule, not a tokenizer.

- A text has ceil(characters / 4) tokens; a message costs 4 more.
- `prompt_tokens` is the sum over the messages.
- `cached_tokens` are those of the leading system messages, rounded down to blocks of 64: what an
  endpoint with a prefix cache reports once it has seen the task. It is the same for the first
  call, so that usage is a function of the request alone.
- `completion_tokens` are those of the reply; a limit of n tokens cuts it after 4 n characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
CACHE_BLOCK = 64


def count_tokens(text: str) -> int:
    """Returns the number of tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def cut(text: str, max_tokens: int) -> str:
    """Returns the first `max_tokens` tokens of a text."""
    return text[: max_tokens * CHARACTERS_PER_TOKEN]


def prompt_tokens(messages: Sequence[tuple[str, str]]) -> int:
    """Returns the tokens of (role, text) messages."""
    return sum(TOKENS_PER_MESSAGE + count_tokens(text) for _, text in messages)


def usage(messages: Sequence[tuple[str, str]], reply: str) -> dict[str, Any]:
    """Returns the `usage` object of a completion."""
    leading = 0
    while leading < len(messages) and messages[leading][0] in {"system", "developer"}:
        leading += 1
    prompt = prompt_tokens(messages)
    completion = count_tokens(reply)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {
            "cached_tokens": prompt_tokens(messages[:leading]) // CACHE_BLOCK * CACHE_BLOCK
        },
    }
