"""The closed sets of words that a log uses."""

from __future__ import annotations

from typing import Literal, get_args

Status = Literal[
    "ok", "no_reply", "no_program", "rejected", "invalid", "error", "timeout", "partial"
]
"""How a child ended; only `ok` has a fitness. `no_reply`: no answer after all attempts;
`no_program`: the reply holds no complete program; `rejected`: a filter refused it, unevaluated;
`invalid`: it returned no legal construction; `error`: it raised, crashed or broke a limit other
than `timeout`, that of time; `partial`: it was tried on some instances only, and dropped, or
a stage of its evaluation refused it."""

STATUSES: tuple[Status, ...] = get_args(Status)

KEPT_OUT: tuple[Status, ...] = ("rejected", "partial")
"""Of children that the run itself sorted out, which is no failure of theirs."""

Isolation = Literal["separate", "shared", "here"]
"""`separate`: the evaluator scores a returned value in a process that never saw the program.
`shared`: the evaluator imports the program itself, both in the same sandbox."""

Evolves = Literal["python", "text"]
"""What evolves on a task: a Python program or any other text."""

Edits = Literal["rewrite", "diff"]
"""What a model's reply is: the whole program, or blocks that say what to replace in its parent."""

MixedEdits = Literal["rewrite", "diff", "mixed"]
"""What the replies of a run are: all of one kind, or each of a kind that is drawn for it."""

EDITS: tuple[MixedEdits, ...] = get_args(MixedEdits)

EndReason = Literal[
    "completed",
    "target",
    "patience",
    "rule",
    "budget",
    "interrupted",
    "endpoint",
    "refused",
    "over",
]
"""Why a session ended; `rule`: one of the user's own was reached, see `stops` of `evo.run`;
`refused`: all children of a generation failed for one permanent reason; `over`: the engine
that made the children ended, so that no further generation can be made."""
