"""A page that lives: what `replay site` writes, served, while runs are being written.

    with View("logs/local") as view:
        print(view.link)                  # such as http://127.0.0.1:40123/?token=...

The page reads a folder's logs in parts: a line of each run, followed as its log grows; what a run's
page shows, once it is opened; figures and tables, once they are asked for. It listens to this
machine alone, and what changes anything (pause, stop, go on) needs the token of its link.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from evo.logs.cost import cost_of_calls
from evo.logs.journal import LogError
from evo.logs.log import read_log
from evo.logs.stopping import stop
from evo.logs.types import as_path
from evo.models.registry import own_models
from evo.models.responses import JSON, HttpRequest, Response
from evo.models.serving import HttpServer
from replay.explorers import run_text
from replay.explorers.run_data import RunData, look_at, own_goal
from replay.explorers.scripts import script
from replay.importers.following import SHARE
from replay.logs.decode import find_own
from replay.logs.rows import made_with, search_of
from replay.logs.selected import Where, check_where, has_value, in_words
from replay.logs.tables import load_tables
from replay.markup import page
from replay.plots.scripts import CHARTS
from replay.reports.beside import Beside, require_followed
from replay.reports.forms import html_table
from replay.reports.live_runs import GOES_ON, Run, ToolRun
from replay.reports.pictures import Drawn
from replay.reports.report import groups
from replay.reports.site import (
    NUMBERS,
    SCRIPT,
    comparison_of,
    parts_of,
    run_cells,
    run_heads,
    run_of,
    site_body,
)
from replay.reports.studies import stamp as study_stamp
from replay.reports.studies import studies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIVE = Path(__file__).with_name("live.js")
HTML = "text/html; charset=utf-8"
NAMED = ("task", "model", "search")

PART = 0.5
"""Seconds after which a look at the runs answers with those that it has read so far."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Folder:
    """The runs of a folder, which keep their numbers.

    Attributes:
        path: The folder, a log, or the log of a gate.
        where: Values by column; runs that have others are not shown.
        beside: Gates, and what other tools write.
        runs: In order of their first appearance, in which they are read.
    """

    path: Path
    where: Where = field(default_factory=dict)
    beside: Beside = field(init=False)
    runs: list[Run] = field(default_factory=list)
    _read: int = 0  # how many of them were read
    _lines: dict[int, tuple[object, dict[str, Any]]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _parts: tuple[object, str] = (None, "")
    _drawn: Drawn = field(default_factory=dict)
    _drawing: threading.Lock = field(default_factory=threading.Lock)
    _again: float = 0.0
    _reread: float = 0.0

    def __post_init__(self) -> None:
        self.beside = Beside(self.path)

    def look(self) -> list[dict[str, Any]]:
        """What the page shows now of every run that was read; many are read in several looks."""
        with self._lock:
            if not self.unread:
                self._find()
                for run in self.runs[: self._read]:
                    run.refresh()
            until = time.monotonic() + PART
            while self.unread:
                self.runs[self._read].refresh()
                self._read += 1
                if time.monotonic() >= until:
                    break
            return [self._line(run) for run in self.runs[: self._read] if self.shows(run)]

    def shows(self, run: Run) -> bool:
        """Whether a run is one of those that are asked for; one that cannot be read is."""
        if not self.where or run.log is None:
            return True
        header = run.log.header
        columns = {**made_with(header), "run": self.name(run)}
        columns |= {"protocol": header.protocol, "condition": header.condition}
        return all(has_value(columns.get(name), texts) for name, texts in self.where.items())

    @property
    def unread(self) -> int:
        """How many runs were found and not read yet."""
        return len(self.runs) - self._read

    def _find(self) -> None:
        """Adds the runs that have appeared."""
        known = {run.path: run for run in self.runs}
        for path in find_own(self.path):
            if path not in known:
                self.runs.append(Run(path, len(self.runs)))
        self.beside.look()
        for followed in self.beside.tools:
            for path in followed.logs:
                run = known.get(path) or ToolRun(path, len(self.runs), followed=followed)
                if path not in known:
                    self.runs.append(run)
                assert isinstance(run, ToolRun)
                run.running = self.beside.is_running(followed)

    def state(self) -> dict[str, Any]:
        """The lines of runs, and what changes when an allocation or a sweep goes on.

        `unread` is the number of runs without a line yet, `rest` is the seconds for which figures
        should wait, as drawing takes a share of the time, and `wait` those for the page of a run
        that is open, as reading it does.
        """
        marks = "".join(f" {size}" for _, _, size in study_stamp(self.path))
        shown: dict[str, Any] = {"runs": self.look(), "unread": self.unread}
        shown |= {"gates": self.beside.html(), "studies": marks}
        rest, wait = (max(0.0, at - time.monotonic()) for at in (self._again, self._reread))
        return {**shown, "rest": rest, "wait": wait}

    def run(self, number: str) -> Run:
        """The run with a number.

        Raises:
            LookupError: There is none.
        """
        with self._lock:
            if not self.runs:  # a link to a run may be followed before the list is read
                self.look()
            if not number.isdecimal() or int(number) >= len(self.runs):
                raise LookupError(f"there is no run {number[:20]!r}")
            run = self.runs[int(number)]
            if run.number >= self._read:  # not in the list yet
                run.refresh()
            return run

    def name(self, run: Run) -> str:
        """The name of a run: its place below the folder."""
        base = self.path if self.path.is_dir() else self.path.parent
        path = run.path.relative_to(base) if run.path.is_relative_to(base) else run.path
        if isinstance(run, ToolRun):
            place = run.followed.place
            known = place.is_relative_to(base) and place != base
            path = place.relative_to(base) if known else Path(*place.absolute().parts[-2:])
            if sum(each.place == place for each in self.beside.tools) > 1:
                path /= run.followed.tool
            if len(run.followed.logs) > 1:
                path /= run.path.stem
        if path.suffix == ".gz" and run.path.with_suffix("").exists():
            return str(path)  # a name is one run's, whose links it is in
        return str(path).removesuffix(".gz").removesuffix(".jsonl")

    def _line(self, run: Run) -> dict[str, Any]:
        """What the page shows of a run, made again only where something has changed."""
        state = run.state
        words, alone = run.words(state), not run.study
        of = run.stamp, state, words, bool(run.said), alone, self.name(run)
        if self._lines.get(run.number, ((), {}))[0] != of:
            self._lines[run.number] = of, self._make_line(run, state, words)
        return self._lines[run.number][1]

    def _make_line(self, run: Run, state: str, words: str) -> dict[str, Any]:
        log = run.log
        line = {"number": run.number, "state": state, "words": words, "stamp": 0, "done": 0.0}
        line |= {"tool": isinstance(run, ToolRun), "failed": bool(run.said), "alone": True}
        if log is None:
            empty = dict.fromkeys(NUMBERS, math.nan)
            cells = run_cells(run.number, self.name(run), ["", "", ""], empty, [])
            return {**line, "cells": cells, "calls": 0, "ok": 0, "children": 0, "dollars": None}
        header, best = log.header, log.trajectory
        calls = log.calls
        cost = cost_of_calls(calls, header)
        tokens = math.nan
        if cost.prompt_tokens is not None and cost.completion_tokens is not None:
            tokens = cost.prompt_tokens + cost.completion_tokens
        ok, children = log.status_counts.get("ok", 0), len(log.outcomes)
        waited = [each.latency for call in calls for each in call.attempts]
        attempts = len(waited)
        values = {
            "initial": best[0] if len(best) else math.nan,
            "best": best[-1] if len(best) else math.nan,
            "N": header.children,
            "T": len(log.generations),
            "seed": header.seed if header.seed >= 0 else math.nan,
            "calls": attempts,
            "ok": 100 * ok / children if children else math.nan,
            "tokens": tokens,
            "seconds": math.fsum(math.nan if each is None else each for each in waited),
        }
        silent = not attempts and not header.source.startswith("evo")
        if silent:  # unknown, which is not none
            values |= dict.fromkeys(["calls", "tokens", "seconds"], math.nan)
        named = [header.task.name, header.model_name, search_of(header)]
        cells = run_cells(run.number, self.name(run), named, values, best.tolist())
        goal = own_goal(log)
        done = None if goal is None else min(1.0, children / (max(goal, 1) * header.children))
        return {
            **line, "stamp": run.stamp, "done": done, "alone": not run.study, "cells": cells,
            "calls": attempts, "ok": ok, "children": children,
            "dollars": cost.dollars if header.model.is_llm and not silent else None,
        }  # fmt: skip

    def ask(self, number: str, wish: str) -> str:
        """Pauses, stops or continues a run; returns what was done."""
        run = self.run(number)
        if isinstance(run, ToolRun):
            raise LogError(f"{self.name(run)} is a run of another tool, which knows no wishes")
        if wish == "go on":
            if run.state not in GOES_ON:
                raise LogError(f"{self.name(run)} is {run.state}: there is nothing to continue")
            if run.study:
                raise LogError(f"{self.name(run)} goes on with its {run.study}, not by itself")
            if run.log is not None and run.log.ends and run.log.ends[-1].reason == "budget":
                command = f"evo resume {quote(os.fspath(run.path))} --budget calls=NUMBER"
                raise LogError(f"{self.name(run)} was ended by its budget: `{command}` goes on")
            if run.log is not None:
                own_models(run.log.header, run.path)  # raises where the command would end at once
            run.go_on()
            return f"{self.name(run)} goes on"
        if wish not in ("pause", "stop"):
            raise LogError(f"expected pause, stop or go on, got {wish[:40]!r}")
        if run.state != "running":
            raise LogError(f"{self.name(run)} is {run.state}: nothing is writing it")
        stop(run.path, wish)  # type: ignore[arg-type]
        own = (each for each in self.runs if not isinstance(each, ToolRun))
        others = any(each.state == "running" for each in own if each is not run)
        also = ", with all runs of its command" if others else ""
        return f"{self.name(run)} was asked to {wish}{also}"

    def parts(self) -> str:
        """Allocations and sweeps, and figures and tables of every task and model, as they are."""
        with self._drawing:
            began = time.thread_time()
            with self._lock:
                read = [run for run in self.runs if run.log is not None and run.log.outcomes]
                readable = [run for run in read if self.shows(run)]
                lines = [(run.number, run.stamp) for run in readable]
            stamp = lines, study_stamp(self.path)
            if self._parts[0] != stamp:
                try:
                    self._parts = stamp, self._draw([run.path for run in readable])
                finally:
                    self._again = time.monotonic() + (time.thread_time() - began) / SHARE
            return self._parts[1]

    def _draw(self, logs: Sequence[Path]) -> str:
        """What `parts` returns, drawn from these logs."""
        found = "".join(studies(self.path))
        if logs:
            tables = load_tables(logs, strict=False, progress=False)
            parts = groups(tables)
            found += comparison_of(tables, parts) + parts_of(parts, self._drawn)
        return found

    def page_of(self, number: str) -> str:
        """What the page of a run shows, as its script."""
        run, began = self.run(number), time.thread_time()
        try:
            log = read_log(run.path)
            rows = load_tables(run.path, strict=False, progress=False).runs
            shown = run_of(log, rows.iloc[0]) | {"name": self.name(run)}
            data = json.dumps(shown, allow_nan=False, separators=(",", ":"))
        finally:
            self._reread = time.monotonic() + (time.thread_time() - began) / SHARE
        return f"replaySite({run.number}, {data});\n"

    def child(self, number: str, place: str) -> str:
        """A child: the exact messages, the reply, what it changed, its notes and its requests."""
        run = self.run(number)
        generation, _, index = place.partition("-")
        if not (generation.isdecimal() and index.isdecimal()):
            raise LookupError(f"there is no child {place[:20]!r}")
        data = RunData(read_log(run.path))
        at = int(generation), int(index)
        if at not in data.places:
            raise LookupError(f"{self.name(run)} has no child {place} yet")
        return run_text.child(look_at(data, at))


class LivePage(HttpServer):
    """Serves the page of a folder to this machine.

    Args:
        folder: A folder of logs, a log, or the log of a gate.
        port: TCP port; 0: a free one.
        where: Values by column; only runs that have them are shown (default: all).

    Raises:
        ValueError: `where` names a column by which runs cannot be chosen.
        LogError: There is no such folder, or the file is no log.
        OSError: On entering: it cannot listen there.

    Attributes:
        folder: The runs.
        token: What a request that changes something must state.
    """

    def __init__(
        self, folder: str | os.PathLike[str], port: int = 0, where: Where | None = None
    ) -> None:
        super().__init__("127.0.0.1", port)
        check_where(where or {})
        path = as_path("folder", folder)
        if not path.exists():
            raise LogError(f"{path}: no such folder or log")
        require_followed(path)
        self.folder = Folder(path, where or {})
        self.token = secrets.token_urlsafe(16)

    @property
    def link(self) -> str:
        """The address of the page, with its token, once the server is entered."""
        return f"{self.address}/?token={self.token}"

    async def respond(self, request: HttpRequest) -> Response:
        """Answers a request of the page."""
        return await _aside(self._answer, request)

    def _answer(self, request: HttpRequest) -> Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        own = self.address.removeprefix("http://")
        if headers.get("host") not in (own, own.replace("127.0.0.1", "localhost")):
            return _refusal(421, "this page answers to this machine's own names alone")
        try:
            if request.method == "POST":
                return self._ask(request, headers)
            return self._get(request)
        except LookupError as error:
            return _refusal(404, str(error.args[0]))
        except (LogError, ValueError) as error:
            return _refusal(409, str(error))

    def _get(self, request: HttpRequest) -> Response:
        match request.path.strip("/").split("/"):
            case [""]:
                return Response(200, self._page().encode(), kind=HTML)
            case ["state"]:
                return Response(200, msgspec.json.encode(self.folder.state()))
            case ["parts"]:
                return Response(200, self.folder.parts().encode(), kind=HTML)
            case ["runs", name] if name.endswith(".js"):
                text = self.folder.page_of(name.removesuffix(".js"))
                return Response(200, text.encode(), kind="text/javascript; charset=utf-8")
            case ["child", number, place]:
                return Response(200, self.folder.child(number, place).encode(), kind=HTML)
        raise LookupError("there is no such page")

    def _ask(self, request: HttpRequest, headers: Mapping[str, str]) -> Response:
        if not secrets.compare_digest(headers.get("x-token", ""), self.token):
            return _refusal(403, "this needs the token of the link that `replay view` printed")
        try:
            wish = msgspec.json.decode(request.body, type=dict[str, str])
        except msgspec.DecodeError as error:
            return _refusal(400, f"expected JSON with run and wish: {error}")
        said = self.folder.ask(wish.get("run", ""), wish.get("wish", ""))
        return Response(200, msgspec.json.encode({"said": said}))

    def _page(self) -> str:
        where = in_words(self.folder.where)
        title = f"Runs of {self.folder.path.resolve().name}{f', {where}' if where else ''}"
        table = html_table(run_heads(NAMED, live=True), [])
        body = site_body(
            title,
            menu=[("runs", "Runs"), ("parts", "Figures and tables")],
            inside=[
                '<div class="sums" id="sums"></div><p id="news" role="status" class="muted">'
                "Reading the logs …</p>",
                '<section id="runs"><h2>Runs</h2><p class="find"><input type="search" id="find" '
                'aria-label="find runs" placeholder="find: task, model, seed, ..."><span '
                f'class="muted" id="found" role="status"></span></p>{table}</section>',
                '<section id="gates"></section>',
                '<section id="parts"><p id="age" class="muted"></p><div id="drawn"></div>'
                "</section>",
            ],
        )
        files = (
            script("run_view"),
            CHARTS,
            *(each.read_text(encoding="utf-8") for each in (SCRIPT, LIVE)),
        )
        return page(title, body, script="\n".join(files), connect=True)


async def _aside(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Returns what a function returns on a thread that the end of the page does not wait for."""
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(work(*arguments, **named))
        except BaseException as error:  # who asked has it
            found.set_exception(error)

    found.set_running_or_notify_cancel()
    threading.Thread(target=run, name="replay-view", daemon=True).start()
    return await asyncio.wrap_future(found)


def _refusal(status: int, words: str) -> Response:
    return Response(status, msgspec.json.encode({"error": words}), kind=JSON)
