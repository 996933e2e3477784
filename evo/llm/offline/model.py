"""The offline model itself: from a chat-completions request to a completion.

What a request asks for is told from the last user message:

- a line that begins with `Problem:` and no code block: an arithmetic word problem to solve;
- a code block: a program or a text to rewrite (the last Python block that holds code, else the
  last block);
- neither: a reply that says what this model is.

A rewrite depends on the parent's text, the seed and the temperature alone. Without a seed the
whole prompt takes the seed's place. It is not an LLM.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evo.keyed import KeyedStream
from evo.llm.offline import OFFLINE_MODELS, OFFLINE_VERSION, second
from evo.llm.offline.bank import load_words
from evo.llm.offline.edits import edit
from evo.llm.offline.failures import draw_failure, spoil
from evo.llm.offline.formats import frame, reply_format
from evo.llm.offline.problems import find_problem
from evo.llm.offline.program import find_bank, parse, read_chain, write_chain
from evo.llm.offline.request import Request, read_request
from evo.llm.offline.rewrite import choose_operation, rewrite
from evo.llm.offline.solver import solve
from evo.llm.offline.texts import rewrite_text
from evo.llm.offline.usage import cut, usage

_BLOCK = re.compile(r"^(`{3,})[ \t]*([\w+-]*)[ \t]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_EVOLVE = re.compile(r"(.*?EVOLVE-BLOCK-START[^\n]*\n)(.*?)([^\n]*EVOLVE-BLOCK-END.*)", re.DOTALL)


@dataclass(frozen=True)
class Parent:
    """The text to rewrite: `text` between what must stay as it is."""

    language: str
    text: str
    before: str = ""
    after: str = ""


def complete(body: Mapping[str, Any]) -> dict[str, Any]:
    """Answers a chat-completions request; a pure function.

    Args:
        body: The request as JSON; see `request.read_request` for what is read.

    Returns:
        The completion as JSON. `created` is 0: the model has no clock.

    Raises:
        RequestError: For a request that it refuses.
    """
    request = read_request(body)
    version = OFFLINE_MODELS[request.model]
    reply, finish_reason = (answer if version == OFFLINE_VERSION else answer_second)(request)
    if len(cut(reply, request.max_tokens)) < len(reply):
        reply, finish_reason = cut(reply, request.max_tokens), "length"
    identity = hashlib.sha256(
        repr((request.messages, request.seed, reply)).encode("utf-8", "replace")
    )
    return {
        "id": f"chatcmpl-offline-{identity.hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "system_fingerprint": f"offline-{version} (not an LLM)",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply},
                "finish_reason": finish_reason,
                "logprobs": None,
            }
        ],
        "usage": usage(request.messages, reply),
    }


def answer(request: Request) -> tuple[str, str]:
    """Returns the reply and its finish reason, before any limit of tokens."""
    parent = find_parent(request.prompt)
    problem = find_problem(request.prompt)
    if problem is not None and parent is None:
        return solve(problem, request.system, seed=request.seed), "stop"
    if parent is None:
        return (
            "This is the offline model, a seeded rewriter of programs and not an LLM. The message "
            "has neither a code block to rewrite nor a line 'Problem: ...' to solve."
        ), "stop"
    draws = KeyedStream(OFFLINE_VERSION, parent.text.strip(), _key(request))
    return _rewrite(parent, request, draws)


def answer_second(request: Request) -> tuple[str, str]:
    """Returns the reply of version 2, as `answer` does that of version 1."""
    triple = second.read_triple(request)
    if triple is not None:
        return second.score_triple(triple, seed=request.seed), "stop"
    parent, shown = find_parent(request.prompt), second.read_shown(request.prompt)
    if parent is None:
        reply, reason = answer(request)
        return second.without_digits(reply, request.system), reason
    if shown.current is not None:
        parent = _parent(parent.language, shown.current)
    key = _key(request)
    text, python = parent.text, parent.language == "python"
    if shown.partner is not None:
        mix, luck = KeyedStream("mix", text, shown.partner, key), second.mix_texts
        text = (second.mix_programs if python else luck)(text, shown.partner, mix)
    heeded = second.heeds(shown, parent.text, key)
    if heeded and not python:
        text = second.mend_text(text) + "\n"
    draws = KeyedStream("2", text.strip(), key)
    return _rewrite(replace(parent, text=text), request, draws, careful=heeded)


def _key(request: Request) -> object:
    return request.seed if request.seed is not None else [list(m) for m in request.messages]


def find_parent(prompt: str) -> Parent | None:
    """Returns the program or text that a user message shows, or None."""
    blocks = [(match[2].lower(), match[3]) for match in _BLOCK.finditer(prompt)]
    if not blocks:
        return None
    programs = [text for tag, text in blocks if tag in ("python", "py", "python3") and _code(text)]
    if programs:
        return _parent("python", programs[-1])
    return _parent(blocks[-1][0] or "text", blocks[-1][1])


def _parent(language: str, text: str) -> Parent:
    marked = _EVOLVE.fullmatch(text) if language == "python" else None
    return Parent(language, marked[2], marked[1], marked[3]) if marked else Parent(language, text)


def _code(text: str) -> bool:
    """Whether a block is a program rather than a placeholder; one that does not parse counts."""
    tree = parse(text)
    return tree is None or bool(tree.body)


def _rewrite(
    parent: Parent, request: Request, draws: KeyedStream, *, careful: bool = False
) -> tuple[str, str]:
    """Rewrites a parent, or fails to unless it is careful."""
    python = parent.language == "python"
    failure = draw_failure(draws, temperature=request.temperature)
    if careful or (not python and failure not in ("prose", "truncated")):
        failure = "none"
    if failure == "prose":
        return draws.pick(load_words().prose), "stop"
    if python:
        child, words = _rewrite_program(parent.text, draws, boldness=request.temperature / 0.6)
        if failure not in ("none", "truncated"):
            child = spoil(child, failure, draws)
    else:
        child, words = rewrite_text(parent.text, draws)
        child += "\n"
    wanted = reply_format(request.system + "\n" + request.prompt)
    old = parent.before + parent.text + parent.after
    new = parent.before + child + parent.after
    reply = frame(old, new, words, language=parent.language, wanted=wanted, draws=draws)
    if failure == "truncated":
        opened = max(reply.rfind("```", 0, len(reply) - 6), 0)
        return reply[: draws.integer(opened + 12, max(len(reply) - 8, opened + 12))], "length"
    return reply, "stop"


def _rewrite_program(source: str, draws: KeyedStream, *, boldness: float) -> tuple[str, str]:
    """Rewrites a program; of unknown tasks and broken ones it edits the parent only."""
    found = find_bank(source)
    if found is None:
        return (source, "I keep the program.") if draws.chance(0.08) else edit(source, draws)
    bank, entry = found
    chain = read_chain(source)
    operation = choose_operation(chain, bank, draws, boldness=boldness)
    if operation == "copy":
        return source, "I keep the program."
    if chain is None or operation == "edit":
        return edit(source, draws, but=entry if chain is not None and chain.native else "")
    new, words = rewrite(chain, bank, operation, draws)
    return write_chain(new, bank), words
