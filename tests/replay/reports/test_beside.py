"""A tool behind a gate, on the page while it runs, after a kill and after another start."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from foreign_samples import write_shinka

from evo.logs.journal import LogError
from replay.reports.beside import not_followed
from replay.reports.live import LivePage

TOOL = """
import json, os, pathlib, sys, time, urllib.request
steps, out = int(sys.argv[1]), pathlib.Path(sys.argv[2])
(out / "logs").mkdir(parents=True, exist_ok=True)
log = open(out / "logs" / "openevolve_1.log", "w")

def tell(words):
    print("2026 - openevolve - INFO - " + words, file=log, flush=True)

def checkpoint(number, programs):
    inside = out / "checkpoints" / f"checkpoint_{number}"
    (inside / "programs").mkdir(parents=True)
    for program in programs:
        (inside / "programs" / (program["id"] + ".json")).write_text(json.dumps(program))
    return inside / "metadata.json"

made = [{"id": "root", "code": "x = 0", "metrics": {"combined_score": 0.1}, "iteration_found": 0}]
for k in range(1, steps + 1):
    message = {"role": "user", "content": "```python\\nx = 1\\n```"}
    body = json.dumps({"model": "gpt-4o", "messages": [message]}).encode()
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    urllib.request.urlopen(urllib.request.Request(address, body)).read()
    parent = made[-1]["id"]
    if k == 2:
        tell("Iteration 2 error: No valid code found in response")
        continue
    made.append({"id": f"p{k}", "code": f"x = {k}", "metrics": {"combined_score": k / 10},
                 "parent_id": parent, "iteration_found": k})
    tell(f"Iteration {k}: Program p{k} (parent: {parent}) completed in 0.1s")
    tell(f"Metrics: combined_score={k / 10:.4f}")
    if k == 3:
        checkpoint(3, made).write_text(json.dumps({"last_iteration": 3}))
(pathlib.Path("pid")).write_text(str(os.getpid()))
if steps == 4:  # in the middle of a checkpoint
    checkpoint(4, made[:2]).write_text('{"last_it')
    (out / "checkpoints/checkpoint_4/programs/p4.json").write_text('{"id": "p4", "co')
    print("ready", flush=True)
    time.sleep(60)
"""


def get(view: LivePage, path: str) -> str:
    with urllib.request.urlopen(f"{view.address}/{path}", timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def cells(html: str) -> list[str]:
    return [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td[^>]*>(.*?)</td>", html)]


@pytest.mark.slow
def test_a_tool_is_browsed_while_it_runs_and_after_a_kill(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "tool.py").write_text(TOOL)
    watch = [sys.executable, "-m", "evo", "watch", "--log", "gate.jsonl", "--"]
    watch += [sys.executable, "tool.py"]
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [*watch, "4", "../out"],
        cwd=tmp_path / "here",
        **told,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with LivePage(tmp_path / "here" / "gate.jsonl") as view:
            state = json.loads(get(view, "state"))
            [run] = state["runs"]
            assert (run["state"], run["tool"], run["children"], run["ok"]) == (
                "running", True, 4, 3,
            )  # fmt: skip
            assert cells(state["gates"])[1:7] == ["open", "no key", "4", "4", "0", "0"]
            assert "No valid code found" in get(view, "child/0/2-0")
            assert "x = 3" in re.sub("<[^>]*>", "", get(view, "child/0/3-0"))
            shown = get(view, "runs/0.js")
            os.kill(int((tmp_path / "here" / "pid").read_text()), signal.SIGKILL)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 128 + signal.SIGKILL
            assert "to look while it runs: replay view gate.jsonl" in err
            time.sleep(0.2)
            state = json.loads(get(view, "state"))
            [run] = state["runs"]
            assert (run["state"], run["children"], run["ok"]) == ("read", 4, 3)
            assert "closed" in cells(state["gates"])
            assert get(view, "runs/0.js") == shown
            body = json.dumps({"run": "0", "wish": "stop"}).encode()
            asked = urllib.request.Request(f"{view.address}/ask", body, {"X-Token": view.token})
            with pytest.raises(urllib.error.HTTPError, match="409"):
                urllib.request.urlopen(asked, timeout=60)
            again = subprocess.run(
                [*watch, "6", "elsewhere"], cwd=tmp_path / "here", check=True, capture_output=True
            )
            assert b"10 calls were sent" in again.stdout
            deadline = time.monotonic() + 30
            while len(json.loads(get(view, "state"))["runs"]) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert [run["children"] for run in json.loads(get(view, "state"))["runs"]] == [4, 6]


def test_a_folder_of_a_tool_needs_no_gate(tmp_path: Path) -> None:
    write_shinka(tmp_path / "results")
    (tmp_path / "notes.csv").write_text("a,b\n")
    with LivePage(tmp_path) as view:
        state = json.loads(get(view, "state"))
        [run] = state["runs"]
        assert (run["state"], run["children"]) == ("read", 5)
        assert "ShinkaEvolve" in cells(run["cells"])
        assert state["gates"] == ""
        assert "data-chart" in get(view, "parts")
        for place, word in (("1-0", "ok"), ("2-0", "unknown"), ("4-0", "unknown")):
            assert word in get(view, f"child/0/{place}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("notes.txt", "nothing", "notes.txt: expected a folder, or the log of a run or of a gate"),
        ("mine.csv", "trial,step,score\na,1,.1\n", "mine.csv: expected columns .*--columns run="),
        ("calls.csv", "order,fitness\n1,.1\n", "`replay site .*calls.csv -o FOLDER` shows"),
    ],
)  # fmt: skip
def test_a_file_that_no_page_can_show_is_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(LogError, match=message):
        LivePage(tmp_path / name)


def test_tables_in_a_folder_are_named_as_not_followed(tmp_path):
    write_shinka(tmp_path / "theirs")
    assert not_followed(tmp_path) == ""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("order,fitness\n1,.1\n")
    assert f"{tmp_path / 'a.csv'} and 1 more: runs of table" in not_followed(tmp_path)
    assert not_followed(tmp_path / "a.csv") == ""
