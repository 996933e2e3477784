"""The offline model itself: from a request to a reply.

A system message that asks for advice on a search gets some, see `advice`. Else the last user
message determines what a request asks for:

- a line that begins with `Problem:` and no code block: an arithmetic word problem to solve;
- a code block: a program or a text to rewrite;
- neither: a reply that describes this model.

A rewrite depends on the parent's text, the seed and the temperature alone. Without a seed the
whole prompt takes the seed's place. It is not an LLM.
"""

from __future__ import annotations

from collections.abc import Sequence

from evo.keyed import KeyedStream
from evo.models.offline import OFFLINE_MODELS, OFFLINE_VERSION, second
from evo.models.offline.advice import advise, is_asked
from evo.models.offline.bank import WORDS
from evo.models.offline.edits import edit, edit_numbers
from evo.models.offline.failures import draw_failure, spoil
from evo.models.offline.formats import Parent, find_parent, frame, reply_format
from evo.models.offline.problems import find_problem, solve
from evo.models.offline.program import find_bank, read_chain, write_chain
from evo.models.offline.rewrite import choose_operation, rewrite
from evo.models.offline.several import files_shown, rewrite_files, text_of
from evo.models.offline.texts import rewrite_text

_PLAIN = (
    "This is the offline model, a seeded rewriter of programs and not an LLM. The message "
    "has neither a code block to rewrite nor a line 'Problem: ...' to solve."
)


def answer(
    model: str, messages: Sequence[tuple[str, str]], seed: int | None, temperature: float
) -> tuple[str, str]:
    """Returns the reply to (role, text) messages and its finish reason, without limit of tokens."""
    prompt = next((text for role, text in reversed(messages) if role == "user"), "")
    system = "\n".join(text for role, text in messages if role in {"system", "developer"})
    key = seed if seed is not None else [list(message) for message in messages]
    later = OFFLINE_MODELS[model] != OFFLINE_VERSION
    if later and (triple := second.read_triple(system, prompt)) is not None:
        return second.score_triple(triple, seed=seed), "stop"
    if is_asked(system):
        return advise(prompt, key), "stop"
    if files := files_shown(prompt):
        draws = KeyedStream(OFFLINE_MODELS[model], text_of(files), key)
        return _rewrite_files(files, f"{system}\n{prompt}", draws, temperature), "stop"
    parent, careful = find_parent(prompt), False
    if parent is None:
        problem = find_problem(prompt)
        reply = _PLAIN if problem is None else solve(problem, system, seed=seed)
        return second.without_digits(reply, system) if later else reply, "stop"
    if later:
        parent, careful = second.prepare(parent, prompt, key)
    draws = KeyedStream(OFFLINE_MODELS[model], parent.text.strip(), key)
    return _rewrite(parent, f"{system}\n{prompt}", draws, temperature, careful)


def _rewrite_files(
    files: dict[str, Parent], asked: str, draws: KeyedStream, temperature: float
) -> str:
    """Rewrites one of several files, or answers in prose."""
    if draw_failure(draws, temperature=temperature) == "prose":
        return draws.pick(WORDS.prose)

    def program(text: str) -> tuple[str, str]:
        return _rewrite_program(text, draws, boldness=temperature / 0.6)

    wanted = reply_format(asked)
    return rewrite_files(files, draws, diff="difference" in wanted, program=program)


def _rewrite(
    parent: Parent, asked: str, draws: KeyedStream, temperature: float, careful: bool
) -> tuple[str, str]:
    """Rewrites a parent, or fails to unless it is careful."""
    python = parent.language == "python"
    failure = draw_failure(draws, temperature=temperature)
    breaks = failure == "syntax" and not careful
    if careful or (not python and failure not in ("prose", "truncated")):
        failure = "none"
    if failure == "prose":
        return draws.pick(WORDS.prose), "stop"
    if python:
        child, words = _rewrite_program(parent.text, draws, boldness=temperature / 0.6)
        if failure not in ("none", "truncated"):
            child = spoil(child, failure, draws)
    elif parent.compiled:
        child, words = edit_numbers(parent.text, draws)
        child = child.replace(";", "", 1) if breaks else child
    else:
        child, words = rewrite_text(parent.text, draws)
        child += "\n"
    reply = frame(parent, child, words, wanted=reply_format(asked), draws=draws)
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
