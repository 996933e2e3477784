"""What a filter is: a frozen value that refuses programs, or keeps them out of the archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from evo.logs.fitting import fit_text
from evo.logs.records import Evaluation
from evo.plugins import MistakenType
from evo.searches.base import Member

LONGEST = 1000
"""Characters of a reason that are logged."""


class Filter(Protocol):
    """A rule that refuses programs; its fields are part of a run's identity.

    It may have an attribute `rule`, the sentence about it in the prompt, and a method
    `after(evaluation, archive)`, which returns why a program is kept out of the archive once it was
    evaluated, or None. Such a child keeps its status, its fitness and its cost, and is never a
    parent. The evaluation lacks what is private.

    @dataclass(frozen=True)
    class Short:
        most: int = 2000
        name = "short"

        def check(self, program, archive):
            return f"longer than {self.most}" if len(program) > self.most else None

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Short:
        ...     most: int = 10
        ...     name = "short"
        ...     def check(self, program, archive):
        ...         return "too long" if len(program) > self.most else None
        >>> settings = {"generations": 1, "children": 1, "log": new(), "progress": False}
        >>> evo.run("mmd", filters=[Short()], **settings).rejections
        {'short': 1}
    """

    @property
    def name(self) -> str:
        """Its name in `evo.FILTERS`, and the beginning of each reason that is logged."""
        ...

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns why a program is refused, or None.

        Args:
            program: The program in a child's reply.
            archive: The programs of all complete generations, apart from refused ones, so that the
                order in which answers arrive decides nothing.
        """
        ...


def rule_of(of: Filter) -> str:
    """Returns the sentence that a filter adds to prompts, or nothing.

    Raises:
        TypeError: Its `rule` is no text.
    """
    rule = getattr(of, "rule", "")
    if not isinstance(rule, str):
        raise MistakenType(
            f"filter {of.name!r}: expected `rule` to be a sentence for the prompt, got {rule!r:.80}"
        )
    return rule


def refusal(program: str, *, filters: Sequence[Filter], archive: Sequence[Member]) -> str | None:
    """Returns why the first of some filters refuses a program, or None.

    Raises:
        TypeError: A filter returned something other than a string or None.
        ValueError: A filter raised an error.
    """
    for each in filters:
        if (reason := _asked(each, "check", program, list(archive))) is not None:
            return _reason(each, "check", "refused", reason)
    return None


def exclusion(
    evaluation: Evaluation, *, filters: Sequence[Filter], archive: Sequence[Member]
) -> str | None:
    """Returns why the first of some filters keeps an evaluated program out, or None.

    Raises:
        TypeError: A filter returned something other than a string or None.
    """
    for each in filters:
        if not hasattr(each, "after"):
            continue
        own = msgspec.structs.replace(evaluation, metrics=dict(evaluation.metrics))
        if (reason := _asked(each, "after", own, list(archive))) is not None:
            return _reason(each, "after", "kept out of the archive", reason)
    return None


def _asked(of: Filter, method: str, *given: object) -> object:
    """Returns a filter's answer; its failure names the filter."""
    try:
        return getattr(of, method)(*given)
    except MistakenType:
        raise
    except Exception as error:
        raise ValueError(
            f"filter {of.name!r}: expected `{method}` to return a reason or None, and it raised "
            f"{type(error).__name__}: {error}; {_advice(of)}"
        ) from error


def _reason(of: Filter, method: str, what: str, reason: object) -> str:
    """Returns what is logged of a filter's answer."""
    if not isinstance(reason, str) or not reason.strip():
        raise MistakenType(
            f"filter {of.name!r}: expected `{method}` to return a sentence that says why "
            f"the program is {what}, or None to let it pass, got {reason!r:.80}; {_advice(of)}"
        )
    return fit_text(f"{of.name}: {reason}"[:LONGEST], LONGEST)


def _advice(of: Filter) -> str:
    """Returns how a run goes on once a filter is corrected."""
    return (
        "correct it, then `evo resume LOG --filter FILE.py:CLASS`, or "
        f"evo.FILTERS[{of.name!r}] = ... and evo.resume(LOG), go on with the run; a run with "
        "another log begins anew"
    )
