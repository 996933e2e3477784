"""The sandbox: from a program's text to its evaluation, in a jailed process."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "EVALUATOR_FAILED",
    "LAYERS",
    "Evaluator",
    "EvaluatorClosed",
    "SandboxError",
    "SandboxWarning",
    "evaluate",
]

EVALUATOR_FAILED = "the evaluator failed"
"""How the error of an evaluation begins whose fault is the evaluator's own, not the program's."""

if TYPE_CHECKING:
    from evo.sandbox.evaluator import (
        Evaluator,
        EvaluatorClosed,
        SandboxError,
        SandboxWarning,
        evaluate,
    )
    from evo.sandbox.jail import LAYERS


def __getattr__(name: str) -> object:
    """Load the driver's side where it is used; the sandboxed side does without."""
    if name not in __all__:
        raise AttributeError(f"module 'evo.sandbox' has no attribute {name!r}")
    from evo.sandbox import evaluator, jail

    found: object = getattr(jail if name == "LAYERS" else evaluator, name)
    return found
