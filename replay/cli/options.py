"""Options of the commands of `replay`, and how they are parsed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from evo.cli.options import finite, many, one
from evo.logs.types import writable

ALIASES = {"N": "children"}
"""Columns by what else they are called on the command line."""

if TYPE_CHECKING:
    Settings = dict[str, dict[str, list[float]]] | None
    Columns = dict[str, list[str]] | None
    Where = dict[str, list[str]] | None
    Calls = float
else:

    def _calls(text: str) -> float:
        """Parses a budget of calls, with or without its unit."""
        unit, _, number = text.rpartition("=")
        if unit not in ("", "calls"):
            raise ValueError(
                f"expected calls=NUMBER, got {text!r}: a plan is one of calls; in another unit "
                "give what a call costs and a number, such as `--cost call=0.001 --budget 0.5`"
            )
        return finite(number)

    def _settings(texts: Sequence[str]) -> dict[str, dict[str, list[float]]]:
        """Parses POLICY.PARAMETER=NUMBER[,NUMBER...]."""
        found: dict[str, dict[str, list[float]]] = {}
        for text in texts:
            place, _, given = text.partition("=")
            policy, _, parameter = place.partition(".")
            try:
                values = [float(each) for each in given.split(",") if policy and parameter]
            except ValueError:
                values = []
            if not values:
                example = "ucb1.c=0.1 or ucb1.c=0.1,1"
                raise ValueError(
                    f"expected POLICY.PARAMETER=NUMBER such as {example}, got {text!r}"
                )
            found.setdefault(policy, {}).setdefault(parameter, []).extend(values)
        return found

    def _columns(texts: Sequence[str]) -> dict[str, list[str]]:
        """Parses OURS=THEIRS[,OURS=THEIRS...]; the columns of one name stand together."""
        found: dict[str, list[str]] = {}
        for text in (each for given in texts for each in given.split(",")):
            ours, _, theirs = text.partition("=")
            if not (ours and theirs):
                raise ValueError(
                    f"expected OURS=THEIRS such as run=trial,order=step,fitness=score, got {text!r}"
                )
            found.setdefault(ours.strip(), []).append(theirs.strip())
        return found

    def _where(texts: Sequence[str]) -> dict[str, list[str]]:
        """Parses COLUMN=VALUE, whose value may hold anything."""
        found: dict[str, list[str]] = {}
        for text in texts:
            column, equals, value = text.partition("=")
            if not (column.strip() and equals):
                raise ValueError(
                    f"expected COLUMN=VALUE such as model=qwen3-8b or children=4, got {text!r}"
                )
            name = ALIASES.get(column.strip(), column.strip())
            found.setdefault(name, []).append(value.strip())
        return found

    Columns = many(_columns, "--columns", metavar="OURS=THEIRS,...")
    Calls = one(_calls, metavar="calls=NUMBER")
    Where = many(_where, "--where", metavar="COLUMN=VALUE")
    Settings = many(_settings, "--set", metavar="POLICY.PARAMETER=NUMBER")

Output = Parameter(name=("-o", "--output"))
PICTURES = (".png", ".svg", ".pdf")
Theme = Literal["light", "dark", "neutral"]
Form = Literal["text", "json", "csv", "markdown", "latex"]
Logs = Annotated[list[str], Parameter(name="LOGS", negative=())]


def picture(path: Path) -> Path:
    """Returns the path of a figure to write, before any work is done for it."""
    if path.suffix.lower() not in PICTURES:
        raise ValueError(
            f"--output: expected a file name that ends in {', '.join(PICTURES)}, got {str(path)!r}"
        )
    return writable(path)
