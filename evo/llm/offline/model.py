"""The offline model itself: from a request to a reply.

What a request asks for is told from the last user message:

- a line that begins with `Problem:` and no code block: an arithmetic word problem to solve;
- a code block: a program or a text to rewrite;
- neither: a reply that says what this model is.

A rewrite depends on the parent's text, the seed and the temperature alone. Without a seed the
whole prompt takes the seed's place. It is not an LLM.
"""

from __future__ import annotations

from dataclasses import dataclass

from evo.keyed import KeyedStream
from evo.llm.offline import OFFLINE_MODELS, OFFLINE_VERSION, second
from evo.llm.offline.bank import WORDS
from evo.llm.offline.edits import edit
from evo.llm.offline.failures import draw_failure, spoil
from evo.llm.offline.formats import Parent, find_parent, frame, make_parent, reply_format
from evo.llm.offline.problems import find_problem, solve
from evo.llm.offline.program import find_bank, read_chain, write_chain
from evo.llm.offline.rewrite import choose_operation, rewrite
from evo.llm.offline.texts import rewrite_text


@dataclass(frozen=True)
class Request:
    """What the offline model reads of a request; messages are (role, text)."""

    model: str
    messages: tuple[tuple[str, str], ...]
    seed: int | None
    temperature: float

    @property
    def prompt(self) -> str:
        """The text of the last user message, empty if there is none."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @property
    def system(self) -> str:
        """The texts of all system messages."""
        return "\n".join(text for role, text in self.messages if role in {"system", "developer"})

    @property
    def key(self) -> object:
        """What its draws are keyed by."""
        return self.seed if self.seed is not None else [list(m) for m in self.messages]


def answer(request: Request) -> tuple[str, str]:
    """Returns the reply and its finish reason, before any limit of tokens."""
    if OFFLINE_MODELS[request.model] != OFFLINE_VERSION:
        return _answer_second(request)
    parent = find_parent(request.prompt)
    if parent is None:
        return _answer_plain(request), "stop"
    draws = KeyedStream(OFFLINE_VERSION, parent.text.strip(), request.key)
    return _rewrite(parent, request, draws)


def _answer_plain(request: Request) -> str:
    problem = find_problem(request.prompt)
    if problem is not None:
        return solve(problem, request.system, seed=request.seed)
    return (
        "This is the offline model, a seeded rewriter of programs and not an LLM. The message "
        "has neither a code block to rewrite nor a line 'Problem: ...' to solve."
    )


def _answer_second(request: Request) -> tuple[str, str]:
    """Returns the reply of version 2."""
    triple = second.read_triple(request.system, request.prompt)
    if triple is not None:
        return second.score_triple(triple, seed=request.seed), "stop"
    parent, shown = find_parent(request.prompt), second.read_shown(request.prompt)
    if parent is None:
        return second.without_digits(_answer_plain(request), request.system), "stop"
    if shown.current is not None:
        parent = make_parent(parent.language, shown.current)
    text, python = parent.text, parent.language == "python"
    if shown.partner is not None:
        mix = second.mix_programs if python else second.mix_texts
        text = mix(text, shown.partner, KeyedStream("mix", text, shown.partner, request.key))
    heeded = second.heeds(shown, parent.text, request.key)
    if heeded and not python:
        text = second.mend_text(text) + "\n"
    draws = KeyedStream("2", text.strip(), request.key)
    return _rewrite(parent._replace(text=text), request, draws, careful=heeded)


def _rewrite(
    parent: Parent, request: Request, draws: KeyedStream, *, careful: bool = False
) -> tuple[str, str]:
    """Rewrites a parent, or fails to unless it is careful."""
    python = parent.language == "python"
    failure = draw_failure(draws, temperature=request.temperature)
    if careful or (not python and failure not in ("prose", "truncated")):
        failure = "none"
    if failure == "prose":
        return draws.pick(WORDS.prose), "stop"
    if python:
        child, words = _rewrite_program(parent.text, draws, boldness=request.temperature / 0.6)
        if failure not in ("none", "truncated"):
            child = spoil(child, failure, draws)
    else:
        child, words = rewrite_text(parent.text, draws)
        child += "\n"
    wanted = reply_format(request.system + "\n" + request.prompt)
    reply = frame(parent, child, words, wanted=wanted, draws=draws)
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
