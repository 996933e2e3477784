"""A small engine for tests: it rewrites its best program, and misbehaves as it is told to."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import evo
from evo.gate.engines.job import Job
from evo.gate.engines.process import EngineProcess

SCRIPT = """\
import http.client, json, os, re, signal, sys, threading, time, urllib.error, urllib.request
from judging import judge

told = json.load(open("settings.json"))

def save(text):  # whole or not at all
    with open("state.new", "w") as file:
        file.write(text)
    os.replace("state.new", "state.json")

def ask(program):
    body = {"model": told["model"], "messages": [
        {"role": "user", "content": "Current:\\n```python\\n" + program + "```"}]}
    headers = {"authorization": "Bearer toy", "content-type": "application/json"}
    request = urllib.request.Request(
        told["endpoint"] + "/chat/completions", json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError:
            if how != "retry":
                raise

def worth(program):
    with open("program.py", "w") as file:
        file.write(program)
    return judge("program.py")["fitness"]

how, at = told["how"], told["at"]
made, best = 0, [None, open("initial.py").read()]
if told["resumes"] and os.path.exists("state.json"):
    made, best = json.load(open("state.json"))
else:
    best[0] = worth(best[1])
while made < told["calls"]:
    if made == at:
        if how == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raise":
            raise RuntimeError("the toy broke")
        if how == "end":
            break
        if how == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        if how == "flood":
            for _ in range(200):
                threading.Thread(target=ask, args=("x",), daemon=True).start()
            time.sleep(600)
        if how == "judge":
            while True:
                worth("x = " + str(time.monotonic()))
    found = re.search("```python\\n(.*?)```", ask(best[1]), re.S)
    made += 1
    if found:
        fitness = worth(found[1])
        if fitness is not None and (best[0] is None or fitness > best[0]):
            best = [fitness, found[1]]
    save(json.dumps([made, best]))
"""


def toy(name: str = "toy", *, how: str = "", at: int = -1, resumes: bool = False) -> evo.Engine:
    """Registers a toy that does as `how` says once it has made `at` calls."""
    engine = toy_engine(name, how=how, at=at, resumes=resumes)
    evo.register_engine(engine)
    return engine


def toy_engine(name: str, *, how: str = "", at: int = -1, resumes: bool = False) -> evo.Engine:
    """Makes such a toy."""

    def prepare(job: Job) -> list[str]:
        settings = {
            "model": job.model, "endpoint": job.endpoint, "calls": job.calls, "how": how,
            "at": at, "resumes": resumes,
        }  # fmt: skip
        (job.folder / "settings.json").write_text(json.dumps(settings))
        (job.folder / "initial.py").write_text(job.task.initial_program)
        (job.folder / "toy.py").write_text(SCRIPT)
        return [job.python, "toy.py"]

    parent = r"Current:\n```python\n(.*?)```"
    return evo.Engine(name, prepare, parent=parent, resumes=resumes)


MORTAL: dict[str, Any] = {
    "arms": [{"engine": "immortal"}, {"engine": "mortal"}, {"search": "greedy"}],
    "rounds": 12, "children": 2, "progress": False, "max_concurrent": 1, "workers": 1,
}  # fmt: skip


def mortals() -> None:
    """Registers an engine that can go on after a kill, and one that cannot."""
    toy("immortal", resumes=True)
    toy("mortal")


def allocate_until_killed(folder: str, children: int) -> None:
    """Makes an allocation whose process is killed once so many further children are logged."""
    mortals()
    left = children

    def count(event: evo.Event) -> None:
        nonlocal left
        left -= event.kind == "child"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    evo.allocate_live("mmd", "random", log_dir=folder, on_event=count, **MORTAL)


def start_and_die(folder: str) -> None:
    """Starts a program that waits, and is killed once that has said who it is."""
    program = "import os, time; print(os.getpid(), *os.environ, flush=True); time.sleep(600)"
    EngineProcess([sys.executable, "-c", program], Path(folder), {"PATH": "/bin"})
    output = Path(folder, "output.txt")
    while not (output.exists() and output.read_text().endswith("\n")):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def lives(pid: int) -> bool:
    """Whether a process of this number runs; one that ended may wait for its parent."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # just gone, or a system without such files
        return not Path("/proc/self/stat").exists()
    return state != "Z"


def ended(process: EngineProcess) -> str:
    """How an engine ended, once it has."""
    deadline = time.monotonic() + 60
    while process.ended is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.end()
    return process.ended
