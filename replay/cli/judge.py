"""The command `replay judge`: one question about two sides, asked alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evo.cli.options import Count, Flag, Number, Seed
from replay.cli.options import ALIASES, Where

if TYPE_CHECKING:
    import pandas as pd

    from evo.logs.types import Fields


def judge(
    a: Annotated[str, Parameter(name="A")],
    b: Annotated[str, Parameter(name="B")],
    logs: Annotated[list[str] | None, Parameter(name="LOGS", negative=())] = None,
    *,
    margin: Number = None,
    calls: Count = None,
    arms: Count = None,
    sequential: Flag = False,
    seed: Seed | None = None,
    where: Where = None,
    task: str | None = None,
    skip_damaged: Flag = False,
) -> int:
    """Judges one question: is A better than B? Its p belongs to this question alone.

    Args:
        a: One side: values of columns such as search=greedy,N=4; a policy, or FILE.py:CLASS,
            one of your own; or, without LOGS, the logs of one side: a file, a folder or a pattern.
        b: The other side, likewise.
        logs: Logs, folders or glob patterns in which the sides are.
        margin: Largest difference in fitness that counts as none; fix it before you look.
        calls: Budget at which runs are compared; by default the most that all have.
        arms: K of policies; by default a fifth of the runs, at least 2.
        sequential: Follow the evidence run by run: valid however often it is asked.
        seed: Of all draws; 0 by default.
        where: Judge these runs alone, such as search=greedy or N=4; it may be given several times.
        task: The task of runs of other tools that do not say it themselves.
        skip_damaged: Leave out logs that cannot be read, and say so.
    """
    from replay.claims.judging import judge as judged
    from replay.importers.anything import load
    from replay.logs.selected import chosen

    one: str | Fields
    other: str | Fields
    if logs:
        _check_sides(a, b, logs)
        frame = chosen(load(*logs, strict=not skip_damaged, task=task), where)
        one, other = (_side(text, frame) for text in (a, b))
    else:
        frame = _of_logs(a, b, strict=not skip_damaged, task=task, where=where)
        one, other = {"logs": a}, {"logs": b}
    found = judged(
        frame, one, other, margin, calls=calls, arms=arms, sequential=sequential, seed=seed or 0
    )
    print(found)
    return 0


def _check_sides(a: str, b: str, logs: list[str]) -> None:
    """Raises ValueError where the sides are files, as of patterns that the shell has expanded."""
    from evo.policies import POLICIES

    if files := [text for text in (a, b) if text not in POLICIES and Path(text).exists()]:
        raise ValueError(
            "expected two policies or two COLUMN=VALUE before LOGS, or two sets of logs alone, got "
            f"{len(logs) + 2} arguments, of which {files[0]!r} is a path; a pattern needs quotes, "
            "as in `replay judge 'logs/a-*' 'logs/b-*'`, or else the shell expands it"
        )


_PARTS = re.compile(r",(?=\w+=)")
"""What stands between two values; one of settings may hold commas."""


def _side(text: str, frame: pd.DataFrame) -> str | Fields:
    """A policy, or the values of columns, of the type that the column has."""
    from evo.cli.own import known_name

    if "=" not in text:
        return known_name("policy", text, "judge ")
    side: dict[str, object] = {}
    for part in _PARTS.split(text):
        column, equals, value = part.partition("=")
        column = ALIASES.get(column, column)
        if not equals:
            raise ValueError(f"expected COLUMN=VALUE[,COLUMN=VALUE...], got {text!r}")
        side[column] = value
        if column in frame and frame[column].dtype.kind in "if":
            try:
                number = float(value)
            except ValueError:
                raise ValueError(f"{column}: expected a number, got {value!r}") from None
            side[column] = int(number) if number.is_integer() else number
    return side


def _of_logs(a: str, b: str, *, strict: bool, task: str | None, where: Where) -> pd.DataFrame:
    """The runs of two sets of logs, told apart by a column of their names."""
    import pandas as pd

    from evo.policies import POLICIES
    from replay.importers.anything import load
    from replay.logs.repeats import repeats_across
    from replay.logs.selected import chosen

    if all(text in POLICIES or ".py:" in text for text in (a, b)):
        raise ValueError(
            "expected LOGS after the two policies, the runs on which they are replayed, such as "
            f"`replay judge {a} {b} logs/local`"
        )
    if a == b or any("=" in text and not Path(text).exists() for text in (a, b)):
        raise ValueError(
            "expected two different sets of logs, or LOGS after the two sides, such as "
            f"`replay judge search=greedy search=population logs/local`, got {a!r} and {b!r}"
        )
    parts = [
        chosen(load(text, strict=strict, task=task), where).assign(logs=text) for text in (a, b)
    ]
    if shared := {*parts[0]["source"]} & {*parts[1]["source"]}:
        raise ValueError(f"expected different runs on the two sides, got {min(shared)} on both")
    for number, part in enumerate(parts):
        for column in ("run", "repeat_of"):
            names = part[column].astype(str)
            part[column] = names.where(names == "", names + f" ({number})")
    frame = pd.concat(parts, ignore_index=True)
    across = repeats_across(*parts)
    of = [across.get(*pair) for pair in zip(frame["run"], frame["repeat_of"], strict=True)]
    return frame.assign(repeat_of=of)
