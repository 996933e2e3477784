"""Four tasks in a fresh kernel, none longer than fifteen lines, played again in another folder.

The kernel forgets all names between two of them.
"""

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from tiers import thorough_after

pytestmark = pytest.mark.slow

CELLS = {
    "a prompt over twenty examples": """
        rows = [{"prompt": f"{k} plus {k + 1}", "answer": str(2 * k + 1)} for k in range(20)]

        def right(reply, row):
            "A reply is right if it holds the sum of both numbers."
            return row["answer"] in reply

        def model(messages):
            asked = messages[-1]["content"]
            if " plus " in asked and len(asked) < 20:
                found = str(sum(map(int, asked.split(" plus "))))
                return found if "number" in messages[0]["content"] else "A sum."
            return "```text\\nAnswer with a number.\\n```"

        task = evo.task("sums", initial_program="Answer.", evaluate=right, instances=rows)
    """,
    "online bin packing": """
        rows = [{"input": [(k * j * 37) % 50 + 20 for j in range(1, 40)]} for k in range(1, 21)]

        def rule(item, room):
            "The priority of a bin with some room for an item; the highest is taken."
            return -room

        def pack(rule, items, capacity=100):
            room = [capacity] * len(items)
            for item in items:
                fits = [k for k, left in enumerate(room) if left >= item]
                room[max(fits, key=lambda k: rule(item, room[k]))] -= item
            return sum(left < capacity for left in room)

        task = evo.task("bins", initial_program=rule, harness=pack, instances=rows,
                        evaluate=lambda value, row: -value)
    """,
    "a sort judged on speed": """
        rows = [{"input": [(7 * j) % (k + 50) for j in range(200)]} for k in range(5)]
        def ordered(values):
            "Sorts numbers, as fast as it can."
            return [values.pop(values.index(min(values))) for _ in range(len(values))]

        def timed(function, values):
            import time
            began = time.perf_counter()
            return [function(list(values)), time.perf_counter() - began]

        def judged(value, row):
            return -value[1] - 1000 * (value[0] != sorted(row["input"]))

        task = evo.task("sort", initial_program=ordered, evaluate=judged, instances=rows,
                        harness=timed)
    """,
    "an agent with an open client": """
        import threading

        class Client:
            def __init__(self): self.lock, self.calls = threading.Lock(), 0
            def ask(self, text):
                with self.lock: self.calls += 1
                return len(set(text.split()))
        client = Client()

        def agent(text, row):
            "How many different words the agent says, at most as many as the row allows."
            return min(client.ask(text), row["most"]) / row["most"]
        task = evo.task("agent", initial_program="Say something.", evaluate=agent, where="here",
                        instances=[{"most": 3}, {"most": 6}])
    """,
}

MODEL = {
    "online bin packing": "```python\\ndef rule(item, room):\\n    return room\\n```",
    "a sort judged on speed": "```python\\ndef ordered(values):\\n    return sorted(values)\\n```",
    "an agent with an open client": "```text\\nSay something that is quite different.\\n```",
}

RUN = 'log = evo.run(task, model=model, generations=2, children=2, log="{}", progress=False)'

AGAIN = """
import evo, json, pathlib, sys
for path in sorted(pathlib.Path().glob("*.jsonl")):
    again = evo.rerun(path)
    print(json.dumps({
        "name": path.name, "prompts": bool(again.differing_prompts),
        "plans": bool(again.differing_plans), "best": evo.read_log(path).best.fitness,
        "differences": [[each.unstable, each.logged.status, each.again.status]
                        for each in again.differences],
    }))
"""


def code_of(kind: str, log: str) -> str:
    """The lines of a task and of its run, as a user writes them in one cell."""
    cell = textwrap.dedent(CELLS[kind]).strip()
    if kind in MODEL:
        cell += f'\nmodel = lambda messages: "{MODEL[kind]}"'
    return f"{cell}\n{RUN.format(log)}"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, dict[str, Any]]]:
    """By task: the fitness in the notebook, and what came of its log in another folder."""
    client = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    there, elsewhere = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("elsewhere")
    names = {kind: f"{number}.jsonl" for number, kind in enumerate(CELLS)}
    cells = ["import evo"]
    for kind, name in names.items():
        cells += ["%reset -f", "import evo", code_of(kind, name), "print(log.best.fitness)"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client.NotebookClient(book, resources={"metadata": {"path": str(there)}}, timeout=240).execute()
    for name in names.values():
        (there / name).rename(elsewhere / name)
    done = subprocess.run(
        [sys.executable, "-c", AGAIN], cwd=elsewhere, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = {each["name"]: each for each in map(json.loads, done.stdout.splitlines())}
    fitness = [float(cell.outputs[-1].text) for cell in book.cells[4::4]]
    return {
        kind: (best, found[name]) for (kind, name), best in zip(names.items(), fitness, strict=True)
    }


@pytest.mark.parametrize("kind", thorough_after(1, CELLS))
def test_a_task_of_a_cell_is_played_again_without_the_notebook(
    kind: str, played: dict[str, tuple[float, dict[str, Any]]]
) -> None:
    code = f"import evo\n{code_of(kind, 'log.jsonl')}"
    assert len([line for line in code.split("\n") if line.strip()]) <= 15
    fitness, again = played[kind]
    differences = again["differences"]
    assert not again["plans"]
    for unstable, logged, now in differences:
        assert unstable, differences
        assert logged == now
    assert again["best"] == fitness
    assert bool(differences) == ("speed" in kind)
    assert differences or not again["prompts"]  # prompts state the fitness
