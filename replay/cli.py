"""The command `replay`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo.cli import Parser, at_least, guard
from evo.commands import MISTAKE, table

if TYPE_CHECKING:
    import pandas as pd

    from replay.contest import Contest
    from replay.report import Group, Section

PICTURES = (".png", ".svg", ".pdf")


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(
            f"expected a file name that ends in {', '.join(PICTURES)}, got {text!r}"
        )
    return path


def _make_room(path: Path) -> None:
    """Makes the folder of a file that is to be written, before any work is done for it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{path}: cannot write there: {error.strerror}") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a finite number, got {text!r}")
    return value


def _setting(text: str) -> tuple[str, str, list[float]]:
    """Parses POLICY.PARAMETER=NUMBER[,NUMBER...]."""
    place, _, numbers = text.partition("=")
    policy, _, parameter = place.partition(".")
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    if not (policy and parameter and values):
        raise argparse.ArgumentTypeError(
            f"expected POLICY.PARAMETER=NUMBER such as ucb1.c=0.1 or ucb1.c=0.1,1, got {text!r}"
        )
    return policy, parameter, values


def _cost(text: str) -> tuple[str, float]:
    """Parses WHAT=NUMBER."""
    name, _, number = text.partition("=")
    return name, _number(number)


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    parser = Parser(
        prog="replay", description="Read logs of evolutionary search, replay policies, report."
    )
    adder = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, work: Callable[[argparse.Namespace], int], text: str) -> Parser:
        made: Parser = adder.add_parser(name, help=text, description=text)
        made.set_defaults(work=work)
        return made

    one = command("report", report, "tables and a page of figures about logged runs")
    one.add_argument("logs", nargs="+", metavar="LOGS", help="logs, folders or glob patterns")
    one.add_argument(
        "-o", "--output", type=_picture, default=Path("report.png"), metavar="FILE",
        help="the page of figures: .png, .svg or .pdf (default report.png)",
    )  # fmt: skip
    one.add_argument("--tau", type=_number, help="show the time to reach this fitness")
    one.add_argument("--theme", choices=("light", "dark", "neutral"), default="light")
    one.add_argument(
        "--skip-damaged", action="store_true", help="leave out logs that cannot be read, and say so"
    )
    form = one.add_mutually_exclusive_group()
    for name in ("json", "csv", "markdown"):
        form.add_argument(
            f"--{name}", dest="form", action="store_const", const=name, default="plain",
            help=f"write the tables as {name}",
        )  # fmt: skip
    group = one.add_argument_group("replay policies over the runs")
    group.add_argument("--policies", metavar="NAMES", help="ucb1,thompson,... or all")
    group.add_argument(
        "--rounds", type=at_least(1), help="pulls (default: generations of the shortest run)"
    )
    group.add_argument(
        "--arms", type=at_least(1), help="K, drawn per replicate (default: half the runs, 10 most)"
    )
    group.add_argument("--reward", help="best_fitness (default), improvement, improved, rank, ...")
    group.add_argument("--replicates", type=at_least(3), help="default 1000")
    group.add_argument("--seed", type=at_least(0), help="of all draws (default 0)")
    group.add_argument(
        "--set", type=_setting, action="append", default=[], dest="settings",
        metavar="POLICY.PARAMETER=NUMBER", help="such as ucb1.c=0.1; ucb1.c=0.1,1 tries both",
    )  # fmt: skip

    one = command("plan", plan, "from a pilot, how to spend the next budget")
    one.add_argument("logs", nargs="+", metavar="LOGS", help="logs, folders or glob patterns")
    one.add_argument("--budget", type=_number, required=True, help="calls that may be spent")
    one.add_argument("--tau", type=_number, help="a fitness that one would like to reach")
    one.add_argument(
        "--cost", type=_cost, action="append", default=[], metavar="WHAT=NUMBER",
        help="of a call, evaluation or generation, in the unit of the budget (default call=1)",
    )  # fmt: skip
    one.add_argument("--seed", type=at_least(0), default=0, help="of all draws (default 0)")
    one.add_argument(
        "-o", "--output", type=_picture, default=Path("plan.png"), metavar="FILE",
        help="the figure: .png, .svg or .pdf (default plan.png)",
    )  # fmt: skip
    one.add_argument("--theme", choices=("light", "dark", "neutral"), default="light")

    one = command("import", import_runs, "write another tool's runs as compact logs")
    one.add_argument("format", help="openevolve, shinkaevolve, ...; auto recognises it")
    one.add_argument("path", type=Path, help="file or folder, as the tool wrote it")
    one.add_argument(
        "-o", "--output", type=Path, default=Path("logs/local"), metavar="FOLDER",
        help="folder of the new logs (default logs/local)",
    )  # fmt: skip

    one = command("export", export_runs, "write logs in another tool's layout")
    one.add_argument("format", choices=("paper",))
    one.add_argument("logs", nargs="+", metavar="LOGS", help="logs, folders or glob patterns")
    one.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return MISTAKE
    return guard("replay", lambda: int(parsed.work(parsed)))


def report(arguments: argparse.Namespace) -> int:
    """`replay report`."""
    from replay.logs import load_tables
    from replay.pages import Panel, best_construction, draw_page
    from replay.report import FORMATS, groups, policy_sections, sections
    from replay.style import save

    _check_policy_options(arguments)
    _make_room(arguments.output)
    tables = load_tables(*arguments.logs, strict=not arguments.skip_damaged)
    found: list[Section] = []
    panels = []
    for group in groups(tables):
        found += sections(group, tau=arguments.tau)
        contests = _contests(group, arguments) if arguments.policies else []
        for _, contest in contests:
            found += policy_sections(group, contest)
        construction, reason = best_construction(group)
        if reason:
            warnings.warn(reason, stacklevel=2)
        panels.append(Panel(group, construction, contests))
    if arguments.policies and not any(panel.contests for panel in panels):
        raise ValueError("no group of runs is large enough to compare policies on")
    print(FORMATS[arguments.form](found))
    path = save(draw_page(panels, theme=arguments.theme), arguments.output)
    print(f"\nfigures: {path}", file=sys.stdout if arguments.form == "plain" else sys.stderr)
    return 0


def _check_policy_options(arguments: argparse.Namespace) -> None:
    """Refuses options that say how to replay policies where none is named."""
    if arguments.policies:
        return
    for name in ("rounds", "arms", "reward", "replicates", "seed", "settings"):
        if getattr(arguments, name) not in (None, []):
            option = "--set" if name == "settings" else f"--{name}"
            raise ValueError(f"{option} goes with --policies, such as --policies ucb1,thompson")


def _contests(group: Group, arguments: argparse.Namespace) -> list[tuple[str, Contest]]:
    """Policies on the group's runs of each N; a size with too few runs is left out, and said."""
    from replay.contest import LEAST_RUNS, contest, named_policies

    settings: dict[str, dict[str, list[float]]] = {}
    for policy, parameter, values in arguments.settings:
        settings.setdefault(policy, {}).setdefault(parameter, []).extend(values)
    policies = named_policies(arguments.policies.split(","), settings)
    given = {
        name: getattr(arguments, name)
        for name in ("rounds", "arms", "tau", "reward", "replicates", "seed")
        if getattr(arguments, name) is not None
    }
    made = []
    for children, part in group.sizes():
        if len(part.tables.runs) < LEAST_RUNS:
            warnings.warn(
                f"{group.title}, N = {children}: policies are compared on at least {LEAST_RUNS} "
                f"runs, there are {len(part.tables.runs)}",
                stacklevel=2,
            )
            continue
        outcome = contest(part.tables.generations, policies, **given)
        made.append((f"{group.title}, N = {children}: {outcome.setting}", outcome))
    return made


def plan(arguments: argparse.Namespace) -> int:
    """`replay plan`."""
    from replay import forecast
    from replay.logs import load_tables
    from replay.plots import planner_card
    from replay.report import OFFLINE_NOTE, groups
    from replay.style import save

    _make_room(arguments.output)
    parts = groups(load_tables(*arguments.logs))
    for group in parts:
        made = forecast.plan(
            group.tables.generations,
            budget=arguments.budget,
            children=group.tables.children,
            costs=dict(arguments.cost) or None,
            tau=arguments.tau,
            seed=arguments.seed,
        )
        print(made)
        if not group.is_llm:
            print(f"  {OFFLINE_NOTE}")
        print(_options(made.options))
        path = arguments.output
        if len(parts) > 1:
            name = f"{group.task}-{group.model}".replace("/", "_")
            path = path.with_name(f"{path.stem}-{name}{path.suffix}")
        print(f"figure: {save(planner_card(made, theme=arguments.theme)[0], path)}\n")
    return 0


def _options(options: pd.DataFrame) -> str:
    """The ten best ways to spend a budget."""
    rows = [
        (
            row.generations,
            row.children,
            row.arms,
            row.policy,
            f"{row.value:.4f}",
            f"[{row.low:.4f}, {row.high:.4f}]",
        )
        for row in options.head(10).itertuples()
    ]
    heads = ("rounds", "N", "K", "policy", "mean fitness", "95% of searches")
    return table(rows, heads)


def import_runs(arguments: argparse.Namespace) -> int:
    """`replay import`."""
    from replay.importers import read, write

    form = None if arguments.format == "auto" else arguments.format
    found = read(arguments.path, form)
    rows = []
    for run in found:
        target = arguments.output / f"{run.name}.jsonl"
        write(run, target)
        best = run.generations[-1].best_fitness if run.generations else None
        shown = "none" if best is None else f"{best:.5g}"
        rows.append((len(run.generations), run.header.children, shown, target))
    print(table(rows, ("T", "N", "best fitness", "log")))
    for lost in sorted({run.lost for run in found}):
        print(f"not carried over: {lost}")
    print("compact logs: replies and programs are left out")
    return 0


def export_runs(arguments: argparse.Namespace) -> int:
    """`replay export`."""
    from evo.log import read_log
    from replay.importers.paper_export import export_paper
    from replay.reading import find_logs

    for path in find_logs(*arguments.logs):
        print(export_paper(read_log(path), arguments.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
