"""What the commands of `replay` do; `judge`, `plan` and `bench` have modules of their own."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from evo.cli.options import Count, Flag, Number, Port, Seed
from evo.cli.tables import table
from evo.logs.types import JsonObject, writable
from evo.warning import warn
from replay.cli.options import Columns, Form, Logs, Output, Settings, Theme, Where, picture

if TYPE_CHECKING:
    from replay.reports.report import Group
    from replay.reports.tables import Section
    from replay.simulation.contest import Contest


def report(
    logs: Annotated[list[str] | None, Parameter(name="LOGS", negative=())] = None,
    *,
    output: Annotated[Path | None, Output] = None,
    protocol: str | None = None,
    tau: Number = None,
    theme: Theme = "light",
    where: Where = None,
    task: str | None = None,
    skip_damaged: Flag = False,
    form: Annotated[Form, Parameter(name="--format")] = "text",
    json: Flag = False,
    csv: Flag = False,
    markdown: Flag = False,
    latex: Flag = False,
    policies: str | None = None,
    rounds: Count = None,
    arms: Count = None,
    reward: str | None = None,
    replicates: Count = None,
    seed: Seed | None = None,
    settings: Settings = None,
) -> int:
    """Says what logged runs decide, and makes tables and a page of figures of them.

    Args:
        logs: Logs, folders or glob patterns; of a protocol its folder, else logs/local/NAME.
        output: The page of figures: .png (report.png by default), .svg or .pdf; of a protocol
            .html (NAME.html by default).
        protocol: Judge the claims of this protocol: a file, or the name of a shipped one.
        tau: Show the time to reach this fitness.
        theme: Of the figures.
        where: Report these runs alone, such as model=NAME or N=4; it may be given several times.
        task: The task of runs of other tools that do not say it themselves.
        skip_damaged: Leave out logs that cannot be read, and say so.
        form: How the tables are written to standard output.
        json: The same as --format json.
        csv: The same as --format csv.
        markdown: The same as --format markdown.
        latex: The same as --format latex.
        policies: Replay these over the runs: ucb1,thompson,... or all; FILE.py:CLASS is one of your
            own.
        rounds: Pulls; by default the generations of the shortest run.
        arms: K, drawn per replicate; by default a fifth of the runs, at least 2.
        reward: best_fitness by default, improvement, improved, rank, ...
        replicates: 20000 by default.
        seed: Of all draws; 0 by default.
        settings: Such as ucb1.c=0.1; ucb1.c=0.1,1 tries both.
    """
    from evo.cli.own import known_name
    from replay.importers.anything import load_tables
    from replay.logs.selected import chosen_tables
    from replay.plots.output import save
    from replay.reports.comparison import comparison_with_sections
    from replay.reports.decision import decision_section
    from replay.reports.figures import GroupPanel, best_construction, draw_page
    from replay.reports.forms import FORMATS
    from replay.reports.report import groups, policy_sections, sections

    how = {
        "rounds": rounds, "arms": arms, "reward": reward, "replicates": replicates, "seed": seed
    }  # fmt: skip
    given: JsonObject = {name: value for name, value in how.items() if value is not None}
    if not policies and (given or settings):
        option = f"--{next(iter(given))}" if given else "--set"
        raise ValueError(f"{option} goes with --policies, such as --policies ucb1,thompson")
    chosen = _one_form(form, json=json, csv=csv, markdown=markdown, latex=latex)
    if protocol is not None:
        if policies or tau is not None:
            raise ValueError("--protocol judges what the protocol claims: no --policies, no --tau")
        if where or task:
            raise ValueError("--protocol names its runs itself: no --where, no --task")
        return _findings(protocol, logs or [None], output, chosen)
    if not logs:
        raise ValueError("expected LOGS, or --protocol FILE")
    output = picture(output or Path("report.png"))
    tables = chosen_tables(load_tables(*logs, strict=not skip_damaged, task=task), where)
    listed = policies.split(",") if policies else []
    names = [known_name("policy", each, "--policies ") for each in listed]
    if tau is not None:
        given["tau"] = tau
    found: list[Section] = []
    panels = []
    for group in groups(tables):
        found += sections(group, tau=tau)
        contests = _contests(group, names, settings or {}, given) if names else []
        for _, contest in contests:
            found += policy_sections(group, contest)
        construction, reason = best_construction(group)
        if reason:
            warn(reason)
        panels.append(GroupPanel(group, construction, contests))
    if policies and not any(panel.contests for panel in panels):
        raise ValueError("no group of runs is large enough to compare policies on")
    comparison, tail, why = comparison_with_sections(tables)
    contests = [each for panel in panels for each in panel.contests]
    found = [decision_section(tables, comparison, why, contests), *found, *tail]
    print(FORMATS[chosen](found))
    path = save(draw_page(panels, comparison=comparison, theme=theme), output)
    print(f"\nfigures: {path}", file=sys.stdout if chosen == "plain" else sys.stderr)
    return 0


def _one_form(form: Form, **short: bool) -> str:
    """Returns the form of tables that was asked for, by --format or a flag of its own."""
    wanted = (*short.items(), (form, form != "text"))
    chosen, *more = dict.fromkeys(name for name, asked in wanted if asked) or ["plain"]
    if more:
        raise ValueError(f"{chosen} and {more[0]}: the tables are written in one form")
    return chosen


def _findings(protocol: str, folders: Sequence[str | None], output: Path | None, form: str) -> int:
    from evo.studies.protocol import load_protocol
    from replay.reports.forms import FORMATS
    from replay.reports.protocol import write_findings

    if len(folders) > 1:
        raise ValueError(f"expected the folder of the protocol's logs, got {folders!r}")
    stated = load_protocol(protocol)
    output = output or Path(f"{stated.name}.html")
    if output.suffix != ".html":
        raise ValueError(f"--output: expected a file name that ends in .html, got {str(output)!r}")
    print(FORMATS[form](write_findings(stated, folders[0], writable(output))))
    print(f"\npage: {output}", file=sys.stdout if form == "plain" else sys.stderr)
    return 0


def _contests(
    group: Group,
    names: list[str],
    settings: dict[str, dict[str, list[float]]],
    given: JsonObject,
) -> list[tuple[str, Contest]]:
    """Policies on the group's runs of each N; sizes with too few runs are named and left out."""
    from replay.simulation.contest import LEAST_RUNS, compete, named_policies
    from replay.simulation.sizes import more_runs

    policies = named_policies(names, settings)
    made = []
    for children, part in group.sizes():
        where, runs = f"{group.title}, N = {children}", len(part.tables.runs)
        if runs < LEAST_RUNS:
            few = f"policies are compared on at least {LEAST_RUNS} runs, "
            warn(f"{where}: {few}{more_runs(runs, LEAST_RUNS)}")
            continue
        outcome = compete(part.tables.generations, policies, **given)
        made.append((f"{where}: {outcome.setting}", outcome))
    return made


def make_site(
    logs: Logs,
    *,
    output: Annotated[Path, Output],
    title: str | None = None,
    where: Where = None,
    task: str | None = None,
    skip_damaged: Flag = False,
) -> int:
    """Writes logged runs as one static page that opens from the disk.

    Args:
        logs: Logs, folders or glob patterns.
        output: Folder of the page: index.html and runs/.
        title: Of the page; by default the tasks.
        where: Show these runs alone, such as model=NAME or N=4; it may be given several times.
        task: The task of runs of other tools that do not say it themselves.
        skip_damaged: Leave out logs that cannot be read, and say so.
    """
    from replay.reports.site import site

    made = site(logs, output, title=title, strict=not skip_damaged, where=where, task=task)
    print(f"page: {made}")
    return 0


def view(folder: Path, *, port: Port = 0, where: Where = None) -> int:
    """Serves the page of a folder of runs to this machine, and follows runs that are being written.

    Its link holds a token, which its buttons need: pause, stop and go on. Runs that other tools
    write there are followed too, and of a gate its calls and the tool that `evo watch` started.

    Args:
        folder: A folder of logs, a log, or the log of a gate.
        port: TCP port; 0: a free one.
        where: Show these runs alone, such as model=NAME or N=4; it may be given several times.
    """
    sys.stderr.write(f"Opening {folder} ...\n" * folder.exists())  # what follows takes seconds
    from replay.reports.beside import not_followed
    from replay.reports.live import LivePage

    with contextlib.suppress(KeyboardInterrupt), LivePage(folder, port, where) as served:
        print(served.link, flush=True)
        if words := not_followed(folder):
            warn(words)
        print("Ctrl-C ends it; runs go on by themselves", file=sys.stderr)
        threading.Event().wait()
    return 0


def import_runs(
    format: str,  # noqa: A002
    paths: Annotated[list[str], Parameter(name="PATH", negative=())],
    *,
    output: Annotated[Path, Output] = Path("logs/local"),
    full: Flag = False,
    task: str | None = None,
    columns: Columns = None,
) -> int:
    """Writes other tools' runs as logs. A log that is there already and equal stays as it is.

    Args:
        format: openevolve, shinkaevolve, codeevolve, skydiscover, gepa, paper, table, or one that a
            package adds; auto recognises it.
        paths: Files or folders, as the tool wrote them, or folders of many runs.
        output: Folder of the new logs.
        full: Keep prompts, replies and programs, as far as the tool did.
        task: What they were run on: a task's name or folder, for rescore and fork; any other name
            is what tables call the task of runs whose tool does not say it.
        columns: What a table calls our columns, such as run=trial,order=step,fitness=score; several
            columns that name the run are given one after another, run=config,run=island;
            search=config has reports compare the configurations.
    """
    from replay.importers import AUTO, keep, read
    from replay.importers.keeping import log_paths
    from replay.logs.others import united

    given = None if format == AUTO else format
    found = [run for path in paths for run in read(path, given, columns=columns)]
    names = Counter(run.name for run in found)
    if len(paths) > 1 and (twice := [name for name, count in names.items() if count > 1]):
        raise ValueError(
            f"several runs are called {twice[0]!r}: give the one folder that holds them all, so "
            "that each is called after its place there"
        )
    if task is not None and not full and not _is_task(task):
        found, name, task = [run.of_task(task) for run in found], task, None
        print(f"{name!r} is no task that is known here: logs bear the name, none can be rescored")
    there = sum(path.exists() for path in log_paths(found, output))
    rows = []
    for run, target in zip(found, keep(found, output, full=full, task=task), strict=True):
        best = run.generations[-1].best_fitness if run.generations else None
        shown = "none" if best is None else f"{best:.5g}"
        rows.append((len(run.generations), run.header.children, shown, target))
    print(table(rows, ("T", "N", "best fitness", "log")))
    if there:
        print(f"there already, unchanged: {there} of {len(found)} logs")
    if lost := united(run.lost for run in found):
        print(f"not carried over: {lost if task else f'files of the task; {lost}'}")
    if not full:
        print("compact logs: prompts, replies and programs are left out (--full keeps them)")
    elif task is None:
        print("without the task: `--task FOLDER` makes logs that can be rescored and forked")
    return 0


def _is_task(name: str) -> bool:
    """Whether there is a task of this name; a path is one, and an error later if it holds none."""
    from evo.tasks.folder import TaskError
    from evo.tasks.task import load_task

    if Path(name).exists() or "/" in name:
        return True
    try:
        load_task(name)
    except TaskError:
        return False
    return True


def export_runs(
    format: Literal["paper"],  # noqa: A002
    logs: Logs,
    *,
    output: Annotated[Path, Output],
) -> int:
    """Writes logs in another tool's layout; of an allocation its choices as well.

    A run's search is in the name of its file. What the layout has no place for is named; logs that
    it cannot tell apart, or would show as independent runs, are refused before the first file.

    Args:
        format: The layout of the paper's code.
        logs: Logs, folders or glob patterns.
        output: Folder of the files.
    """
    from replay.importers.anything import find_whole
    from replay.importers.paper_export import export
    from replay.logs.allocations import find_journals

    for path in export(find_whole(*logs), output, find_journals(logs)):
        print(path)
    return 0


def samples(folder: Path) -> int:
    """Copies sample logs of a real LLM to a folder, to try the other commands on.

    Args:
        folder: Folder of the copies.
    """
    from replay.logs.samples import copy_samples

    print(f"{len(copy_samples(folder))} logs in {folder}; try `replay report {folder}`")
    return 0


def notebooks(folder: Path) -> int:
    """Copies the notebooks to a folder, with the logs that they read.

    Args:
        folder: Folder of the copies.
    """
    from replay.logs.samples import notebooks as copy_notebooks

    books = copy_notebooks(folder)
    print(f"{len(books)} notebooks and their logs in {folder}; try `jupyter lab {books[0]}`")
    return 0
