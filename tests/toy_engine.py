"""A small engine for tests: it rewrites its best program, and misbehaves as it is told to."""

from __future__ import annotations

import json

import evo
from evo.gate.engines.job import Job

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
    engine = evo.Engine(name, prepare, parent=parent, resumes=resumes)
    evo.register_engine(engine)
    return engine
