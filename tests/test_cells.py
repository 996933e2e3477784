"""Four tasks in a fresh kernel, none longer than fifteen lines, played again in another folder."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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

RUN = 'log = evo.run(task, model=model, generations=2, children=2, log="log.jsonl", progress=False)'


@pytest.mark.parametrize("kind", CELLS)
def test_a_task_of_a_cell_is_played_again_without_the_notebook(kind: str, tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    cell = textwrap.dedent(CELLS[kind]).strip()
    if kind in MODEL:
        cell += f'\nmodel = lambda messages: "{MODEL[kind]}"'
    lines = [line for line in f"import evo\n{cell}\n{RUN}".split("\n") if line.strip()]
    assert len(lines) <= 15
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell("import evo"),
        nbformat.v4.new_code_cell(f"{cell}\n{RUN}"),
        nbformat.v4.new_code_cell("print(log.best.fitness)"),
    ]
    there = tmp_path / "there"
    there.mkdir()
    client.NotebookClient(book, resources={"metadata": {"path": str(there)}}, timeout=120).execute()
    fitness = float(book.cells[-1].outputs[-1].text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (there / "log.jsonl").rename(elsewhere / "log.jsonl")
    code = """
        import evo
        again = evo.rerun("log.jsonl")
        speed = again.differences and all(each.unstable for each in again.differences)
        assert speed or not again.differing_prompts, again  # prompts state the fitness
        assert not again.differing_plans, again
        for each in again.differences:
            assert each.unstable and each.logged.status == each.again.status, each
        print(len(again.differences), evo.read_log("log.jsonl").best.fitness)
    """
    played = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=elsewhere, capture_output=True, text=True
    )
    assert played.returncode == 0, played.stderr
    differences, best = played.stdout.split()
    assert float(best) == fitness
    if "speed" in kind:
        assert int(differences) > 0
    else:
        assert int(differences) == 0
