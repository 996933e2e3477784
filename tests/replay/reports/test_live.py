"""The page that lives: what it says of runs, as their logs grow, and who may change anything."""

import contextlib
import fcntl
import gzip
import json
import re
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from matplotlib.figure import Figure
from samples import changed, make_log_bytes, sample_lines, write_lines, write_sample

import evo
import replay
from evo.logs.journal import LogError
from evo.logs.records import Header, Model
from evo.logs.stopping import stop_file
from replay.reports.live import Folder, LivePage
from replay.reports.studies import studies

OTHER = Model(name="other", active_parameters=10)


@pytest.fixture
def folder(tmp_path):
    write_sample(tmp_path / "logs" / "a.jsonl", seed=1)
    write_sample(tmp_path / "logs" / "pool" / "b.jsonl", seed=2)
    return tmp_path / "logs"


@pytest.fixture
def view(folder):
    with LivePage(folder) as view:
        yield view


def ask(view, path, *, body=None, headers=None):
    """Status and text of an answer."""
    request = urllib.request.Request(f"{view.address}/{path}", body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def runs_of(view):
    while (state := json.loads(ask(view, "state")[1]))["unread"]:
        pass
    return state["runs"]


def wish(view, run, what, token=None):
    body = json.dumps({"run": str(run), "wish": what}).encode()
    token = view.token if token is None else token
    return ask(view, "ask", body=body, headers={"X-Token": token})


def test_it_serves_what_a_site_holds(view, folder, tmp_path):
    status, page = ask(view, f"?token={view.token}")
    assert status == 200
    assert "connect-src 'self'" in page
    assert view.token not in page
    runs = runs_of(view)
    assert [run["state"] for run in runs] == ["completed"] * 2
    replay.site(folder, tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text()
    for run in runs:
        written = (tmp_path / "site" / "runs" / f"{run['number']}.js").read_text()
        _, served = ask(view, f"runs/{run['number']}.js")
        mine, its = (
            json.loads(re.search(r"\{.*\}", each, re.DOTALL)[0]) for each in (served, written)
        )
        assert {k: v for k, v in mine.items() if k not in ("name", "words")} == {
            k: v for k, v in its.items() if k not in ("name", "words")
        }
        _, *numbers = re.findall(r'data-key="([^"]*)"', run["cells"])  # the first is its name
        assert "".join(f'data-key="{each}"' for each in numbers[:2]) in re.sub(
            r">[^<]*</td><td ", "", index
        )
    _, parts = ask(view, "parts")
    assert "data-chart=" in parts
    assert 'id="part-0"' in parts


def test_what_an_imported_log_does_not_state_is_no_zero(tmp_path):
    (tmp_path / "calls.csv").write_text("run,order,fitness\na,1,0.1\na,2,0.2\n")
    replay.importers.keep(replay.importers.read(tmp_path / "calls.csv"), tmp_path / "logs")
    with LivePage(tmp_path / "logs") as view:
        [run] = runs_of(view)
    texts = re.findall(r">([^<]*)</td>", run["cells"])
    assert "table" in texts
    assert not {"greedy", "0", "0.0"} & {*texts}


def test_a_log_and_its_compressed_copy_have_links_of_their_own(view, folder):
    (folder / "a.jsonl.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    links = [re.search('href="#run/([^"]+)"', run["cells"])[1] for run in runs_of(view)]
    assert sorted(links) == ["a", "a.jsonl.gz", "pool%2Fb"]


def test_a_run_is_followed_and_new_ones_appear(view, folder):
    assert len(runs_of(view)) == 2
    whole = make_log_bytes(generations=4, seed=3)
    lines = whole.splitlines(keepends=True)
    path = folder / "c.jsonl"
    path.write_bytes(b"".join(lines[:5]))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as the session that writes it does
        first = runs_of(view)[-1]
        assert first["state"] == "running"
        path.write_bytes(b"".join(lines[:-3]))
        later = runs_of(view)[-1]
        assert later["stamp"] > first["stamp"]
        assert later["children"] > first["children"]
        assert 0 < first["done"] < later["done"] <= 1
    assert runs_of(view)[-1]["state"] == "interrupted"
    path.write_bytes(whole)
    assert runs_of(view)[-1]["state"] == "completed"
    assert [run["number"] for run in runs_of(view)] == [0, 1, 2]


def test_many_runs_appear_part_by_part_in_order(folder, monkeypatch):
    for seed in range(3, 8):
        write_sample(folder / f"{seed}.jsonl", seed=seed)
    with LivePage(folder) as view:
        whole = runs_of(view)
    monkeypatch.setattr("replay.reports.live.PART", 0.0)
    with LivePage(folder) as view:
        for count in range(1, 8):
            state = json.loads(ask(view, "state")[1])
            assert (len(state["runs"]), state["unread"]) == (count, 7 - count)
            assert state["runs"] == whole[:count]
            assert ask(view, "runs/6.js")[0] == 200  # a link to one that has no line yet
        write_sample(folder / "z.jsonl", seed=9)
        assert len(runs_of(view)) == 8


def test_the_end_of_the_page_waits_for_no_drawing(folder, monkeypatch):
    begun, let_go, drawn = threading.Event(), threading.Event(), []

    def draw(self, logs):
        begun.set()
        let_go.wait(20)
        drawn.append(logs)
        return ""

    monkeypatch.setattr(Folder, "_draw", draw)
    with LivePage(folder) as view:
        runs_of(view)
        asking = threading.Thread(target=_left_alone, args=(view,))
        asking.start()
        assert begun.wait(20)
    assert not drawn
    let_go.set()
    asking.join()


def _left_alone(view):
    with contextlib.suppress(OSError):  # the page ends before it answers
        ask(view, "parts")


def test_figures_take_a_share_of_the_time_and_are_drawn_of_what_has_changed(
    view, folder, monkeypatch
):
    drawn = []

    def draw(name, figure, frame):
        drawn.append((figure, *frame["model"].unique()))
        return Figure()

    monkeypatch.setattr("replay.reports.pictures.drawn_alone", draw)
    write_lines(folder / "c.jsonl", changed(sample_lines(seed=3), Header, model=OTHER))
    runs_of(view)
    assert json.loads(ask(view, "state")[1])["rest"] == 0
    _, first = ask(view, "parts")
    assert json.loads(ask(view, "state")[1])["rest"] > 0
    assert len(drawn) == len(set(drawn)) >= 2  # of two models
    assert ask(view, "parts")[1] == first
    write_lines(folder / "d.jsonl", changed(sample_lines(seed=4), Header, model=OTHER))
    runs_of(view)
    before = len(drawn)
    assert ask(view, "parts")[1] != first
    assert drawn[before:]
    assert {model for _, model in drawn[before:]} == {"other"}


def test_the_page_of_an_open_run_is_read_in_a_share_of_the_time(view, monkeypatch):
    def slowly(path):
        began = time.thread_time()
        while time.thread_time() < began + 0.2:
            pass
        return evo.read_log(path)

    assert json.loads(ask(view, "state")[1])["wait"] == 0
    monkeypatch.setattr("replay.reports.live.read_log", slowly)
    assert ask(view, "runs/0.js")[0] == 200
    asked = time.monotonic()
    wait = json.loads(ask(view, "state")[1])["wait"]
    assert wait + time.monotonic() - asked > 0.9  # five times as long as reading took
    assert json.loads(ask(view, "state")[1])["rest"] == 0


def test_every_text_of_a_child_has_a_link(view):
    assert len(runs_of(view)) == 2
    status, text = ask(view, "child/0/1-1")
    assert status == 200
    assert text.startswith("<h2>Child 1 of generation 1</h2>")
    assert "reply 1 1" in text
    assert "Messages" in text
    for lost in ("child/0/9-9", "child/7/1-1", "child/0/x", "runs/9.js", "elsewhere", "child/0/.."):
        assert ask(view, lost)[0] == 404


def test_only_who_has_the_link_may_change_anything(view, folder):
    assert len(runs_of(view)) == 2
    assert wish(view, 0, "stop", token="")[0] == 403
    assert wish(view, 0, "stop", token=f"{view.token}x")[0] == 403
    assert wish(view, 0, "stop") == (409, '{"error":"a is completed: nothing is writing it"}')
    assert wish(view, 0, "go on")[0] == 409
    assert wish(view, 0, "dance")[0] == 409
    assert wish(view, 9, "stop")[0] == 404
    assert ask(view, "ask", body=b"{", headers={"X-Token": view.token})[0] == 400
    path = folder / "a.jsonl"
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert wish(view, 0, "pause") == (200, '{"said":"a was asked to pause"}')
        assert stop_file(path, "pause").exists()
        assert "asked to pause" in runs_of(view)[0]["words"]
        with (folder / "pool" / "b.jsonl").open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            said = "a was asked to stop, with all runs of its command"
            assert wish(view, 0, "stop") == (200, f'{{"said":"{said}"}}')
        assert wish(view, 0, "stop")[0] == 200
        assert stop_file(path).exists()


def test_other_names_for_this_machine_are_refused(view):
    """A page of the web whose name leads here does not read the runs."""
    assert ask(view, "state", headers={"Host": "evil.example"})[0] == 421
    port = view.address.rpartition(":")[2]
    assert ask(view, "state", headers={"Host": f"localhost:{port}"})[0] == 200


def test_a_run_that_was_stopped_goes_on(tmp_path):
    path = tmp_path / "logs" / "run.jsonl"
    handle = evo.start("mmd", generations=40, children=2, log=path, progress=False)
    deadline = time.monotonic() + 60
    with LivePage(tmp_path / "logs") as view:
        while not (path.exists() and runs_of(view) and runs_of(view)[0]["children"] > 2):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert wish(view, 0, "stop")[0] == 200
        handle.wait()
        before = runs_of(view)[0]
        assert before["state"] == "stopped"
        assert wish(view, 0, "go on") == (200, '{"said":"run goes on"}')
        while runs_of(view)[0]["children"] <= before["children"]:
            assert time.monotonic() < deadline, runs_of(view)[0]["words"]
            time.sleep(0.2)
        while runs_of(view)[0]["state"] != "running" and time.monotonic() < deadline:
            time.sleep(0.05)
        wish(view, 0, "stop")
        while runs_of(view)[0]["state"] == "running" and time.monotonic() < deadline:
            time.sleep(0.1)


def test_a_run_that_its_budget_ended_does_not_go_on_without_one(tmp_path):
    given = {"generations": 4, "children": 1, "log": tmp_path / "run.jsonl", "progress": False}
    log = evo.run("mmd", budget={"calls": 2}, **given)
    with LivePage(tmp_path) as view:
        assert runs_of(view)[0]["state"] == "stopped"
        status, said = wish(view, 0, "go on")
        assert status == 409
        command = f"evo resume {log.path} --budget calls=NUMBER"
        words = f"run was ended by its budget: `{command}` goes on"
        assert json.loads(said) == {"error": words}
    assert len(evo.read_log(log.path).outcomes) == 2


def test_a_run_whose_model_was_a_function_is_not_said_to_go_on(tmp_path):
    def answer(messages):
        return "no program"

    path = tmp_path / "run.jsonl"
    evo.run("mmd", model=answer, generations=2, children=1, log=path, progress=False)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))  # as a kill leaves it
    with LivePage(tmp_path) as view:
        assert runs_of(view)[0]["state"] == "interrupted"
        status, said = wish(view, 0, "go on")
        assert status == 409
        assert "'answer' was a function of the process that made the log" in said
        assert not runs_of(view)[0]["failed"]


def test_what_cannot_be_read_or_is_not_there_is_said(tmp_path):
    with pytest.raises(LogError, match="no such folder"):
        LivePage(tmp_path / "nothing")
    with LivePage(tmp_path) as view:
        assert runs_of(view) == []
        assert ask(view, "parts") == (200, "")
        whole = make_log_bytes()
        (tmp_path / "a.jsonl").write_bytes(whole[:2000] + b"noise" + whole[2000:])
        [run] = runs_of(view)
        assert run["state"] == "unreadable"
        assert "a.jsonl" in run["words"]


def test_allocations_and_sweeps_are_followed_by_arm_and_by_configuration(tmp_path):
    made = evo.allocate_live(
        "mmd", "ucb1", arms=3, rounds=7, children=1, model="offline", progress=False,
        log_dir=tmp_path / "logs" / "race",
    )  # fmt: skip
    evo.sweep(
        {"children": [1, 2]}, task="mmd", generations=1, seeds=[1, 2], progress=False,
        budget={"calls": 4}, max_concurrent=1, log_dir=tmp_path / "logs" / "grid",
    )  # fmt: skip
    with LivePage(tmp_path / "logs") as view:
        state = json.loads(ask(view, "state")[1])
        parts = ask(view, "parts")[1]
        race, grid = (
            re.search(f"<section class='study'><h2>{head}</h2>.*?</section>", parts, re.DOTALL)[0]
            for head in ("Allocation race", "Sweep grid")
        )
        assert "7 of 7 rounds by ucb1" in race
        cells = [
            re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", race)
        ]
        counts = [int(cell[2]) for cell in cells if cell]
        assert counts == np.bincount(made.pulls, minlength=3).tolist()
        assert len(re.findall("data-chart", race)) == 2
        frame = replay.load_sweep(tmp_path / "logs" / "grid")
        for status, count in frame["status"].value_counts().items():
            assert f"{count} {status}" in grid
        assert f"{frame['fitness'].dropna().groupby(frame['children']).mean().max():.6g}" in grid
        journal = tmp_path / "logs" / "race" / "allocation.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:-1]))  # as it was a pull before
        assert json.loads(ask(view, "state")[1])["studies"] != state["studies"]
        begun = "6 of 7 rounds by ucb1, reward best_fitness; 1 begun and not ended"
        assert begun in ask(view, "parts")[1]
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # as the session that plays it does
            assert "; 1 under way" in "".join(studies(tmp_path / "logs"))
        journal.write_bytes(b"nothing\n")
        assert "Study race" in ask(view, "parts")[1]
