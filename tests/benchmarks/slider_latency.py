"""From a key on a slider to pixels that carry the new value, in JupyterLab in a headless Chromium.

    python tests/benchmarks/slider_latency.py [--moves 40]

On the shipped corpus, all tasks loaded, in milliseconds, each way in a notebook of its own, one
after the other: a slider whose handler only hands over a picture made before (the floor of
anything that asks the kernel), the budget explorer, which the browser draws while the kernel is
busy in another cell (beside a bare input that changes one word), and what the kernel sends numbers
for: the allocation explorer (sliders K and rounds, for which it simulates, and c), a selection
(rounds) and a run (generation and child). The floor and the allocation are also dragged ten times,
with 20 events 40 ms apart (pictures seen).
The first lines are the kernel's own share, without a browser: a value that is new to it, and again.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "replay")]

from browser import lab  # noqa: E402
from synthetic_runs import sweep_runs  # noqa: E402

CORPUS = ROOT / "logs" / "corpus" / "offline"
DATA = f"""
import replay
from replay import explorers
tables = replay.load_tables({str(CORPUS)!r})
frame, children = tables.generations, tables.children
"""
FLOOR = """
import ipywidgets
made = explorers.explore_budget(frame, child_table=children)
pictures = []
for T in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
    made.controls["generations"].value = T
    pictures.append(made.png)
slider = ipywidgets.IntSlider(4, 0, 9, description="floor")
picture = ipywidgets.Image(value=pictures[4], format="png")
slider.observe(lambda change: setattr(picture, "value", pictures[change["new"]]), "value")
made.close()
ipywidgets.VBox([slider, picture])
"""
BUDGET = "b = explorers.explore_budget(frame, child_table=children)\nb"
BUSY = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
MOVES = """async ([label, moves]) => {
  const root = document.querySelector('.replay-view'), found = [];
  const bare = Object.assign(document.createElement('input'), {type: 'range', max: 9});
  const shown = document.createElement('b');
  bare.oninput = () => { shown.textContent = bare.value; };
  root.append(bare, shown);
  const input = label ? root.querySelector(`[aria-label='${label}']`) : bare;
  for (let k = 0, step = 1; k < moves; k++) {
    await new Promise((done) => setTimeout(done, 40));
    const known = input.options ? [...input.options].filter((each) => !each.disabled) : null;
    if (known) {
      const at = known.findIndex((each) => each.value === input.value);
      input.value = known[(at + 1) % known.length].value;
    } else {
      if (+input.value + step > +input.max || +input.value + step < 0) step = -step;
      input.value = +input.value + step;
    }
    const began = performance.now();
    input.dispatchEvent(new Event(known ? 'change' : 'input', {bubbles: true}));
    const drawn = performance.now();
    await new Promise((done) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    }));
    found.push([performance.now() - began, drawn - began]);
  }
  bare.remove();
  shown.remove();
  return found;
}"""
"""Moves a control; milliseconds from the event to the frame after it, and to the end of drawing."""
RUN = CORPUS / "circle_packing" / "circle_packing-offline-N4-s40.jsonl.gz"
WAYS = [
    ("floor", FLOOR, ["floor"], True),
    ("allocation", "explorers.explore_allocation(frame)", ["arms K", "rounds", "c"], True),
    (
        "selection",
        "from synthetic_runs import sweep_runs\n"
        "explorers.explore_selection(sweep_runs(12, 40, noise=0.05))",
        ["rounds"],
        False,
    ),
    ("browse", f"replay.browse({str(RUN)!r})", ["generation", "child"], False),
]
"""Name, cell, sliders by label, and whether to drag them."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--only", nargs="*", help="names of notebooks; all")
    options = parser.parse_args()
    moves, only = options.moves, options.only
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if not only:
        in_process(moves)
    folder = Path(tempfile.mkdtemp())
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    subprocess.run([sys.executable, "-m", "compileall", "-q", ROOT / "evo", ROOT / "replay"])
    with lab.server(folder) as (url, _):
        for stem, cell, sliders, dragged in WAYS:
            if only and stem not in only:
                continue
            lab.write_notebook(folder / f"{stem}.ipynb", [DATA, cell])
            with lab.browser() as (page, _):
                lab.open_notebook(page, url, f"{stem}.ipynb")
                lab.handle(page, sliders[0]).wait_for(state="attached")
                page.wait_for_timeout(3000)
                page.evaluate("() => { window.bare = true; }")
                for label in sliders:
                    name = f"{stem}, {label}"
                    report(name, [move(page, label, k) for k in range(moves)])
                    if dragged:
                        report(
                            f"{name}, pictures of a drag", [drag(page, label) for _ in range(10)]
                        )
                lab.execute(page, "kernelmenu:shutdown")
        if not only or "budget" in only:
            budgets(folder, url, moves)


def budgets(folder: Path, url: str, moves: int) -> None:
    """Move every control of the budget explorer while the kernel is busy in another cell."""
    lab.write_notebook(folder / "budget.ipynb", [DATA, BUDGET, BUSY])
    with lab.browser(width=1400) as (page, _):
        lab.open_notebook(page, url, "budget.ipynb", run=False)
        for _ in range(2):
            lab.execute(page, "notebook:run-cell-and-select-next")
        page.wait_for_selector(".replay-view svg")
        page.wait_for_timeout(5000)
        page.evaluate(  # and does not wait for its end
            "() => { window.jupyterapp.commands.execute('notebook:run-cell-and-select-next'); }"
        )
        page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel"
            ".status === 'busy'"
        )
        for label in (
            "",
            "generations T",
            "children N",
            "calls C",
            "fitness to reach",
            "Cost axis",
        ):
            found = page.evaluate(MOVES, [label, moves])
            report(f"{label or 'bare input'}, to pixels", [each for each, _ in found])
            report(f"{label or 'bare input'}, drawing", [each for _, each in found])
        lab.execute(page, "kernelmenu:shutdown")


def in_process(moves: int) -> None:
    """Compute and pack without a browser: wall and CPU time."""
    import replay
    from replay import explorers

    tables = replay.load_tables(CORPUS)
    frame, children = tables.generations, tables.children
    budget = explorers.explore_budget(frame, child_table=children)
    budget.settle()
    cpu = []
    for k in range(5 * moves):
        T, start = budget.controls["generations"].options[k % 5], time.thread_time()
        budget.screen.set_state({"generations": T, "children": 16 // T, "calls": 16})
        cpu.append(1e3 * (time.thread_time() - start))
    report("in process, a move of budgets, CPU", cpu)
    allocation = explorers.explore_allocation(frame)
    selection = explorers.explore_selection(sweep_runs(12, 40, noise=0.05))
    last = selection.controls["rounds"].max
    for explorer, name, values in (
        (allocation, "arms", [2, 3, 5, 6, 7, 8]),
        (allocation, "rounds", [100, 104, 108, 112, 116, 120]),
        (allocation, "c", [0.01, 0.05, 0.1, 0.5, 1.0]),
        (selection, "rounds", [*range(1, last)]),
    ):
        for again in (False, True):
            wall, cpu = [], []
            for value in values * (1 + again * moves // len(values)):
                start = time.perf_counter(), time.thread_time()
                explorer.controls[name].value = value
                wall.append(1e3 * (time.perf_counter() - start[0]))
                cpu.append(1e3 * (time.thread_time() - start[1]))
            named = f"in process, {explorer._spec.name} {name}{', again' * again}"
            report(f"{named}, wall", wall)
            report(f"{named}, CPU", cpu)
        explorer.settle()


def move(page, label: str, number: int) -> float | None:
    """One key on a slider, back and forth over it; milliseconds to the picture."""
    page.wait_for_timeout(60)
    page.evaluate("() => { window.seen.length = 0; }")
    key = "ArrowRight" if number // 3 % 2 else "ArrowLeft"
    lab.handle(page, label).press(key)
    try:
        page.wait_for_function("() => window.seen.length > 0", timeout=3000)
    except Exception:  # the slider was at its end
        return None
    return float(page.evaluate("() => window.seen[0].wait"))


def drag(page, label: str) -> float:
    """Twenty events 40 ms apart, none at the slider's end; how many pictures are seen."""
    lab.handle(page, label).focus()
    for key in ("Home", *["ArrowRight"] * 5):
        page.keyboard.press(key)
    page.wait_for_timeout(1500)
    page.evaluate("() => { window.seen.length = 0; }")
    for number in range(20):
        page.keyboard.press("ArrowRight" if number // 4 % 2 else "ArrowLeft")
        page.wait_for_timeout(40)
    page.wait_for_timeout(250)  # less than the rest after which the full picture comes
    return float(page.evaluate("() => window.seen.length"))


def report(name: str, found: list[float | None]) -> None:
    """Median and 95th percentile, and what nine in ten reach."""
    known = sorted(value for value in found if value is not None)
    p10, p95 = (known[min(len(known) - 1, int(share * len(known)))] for share in (0.1, 0.95))
    median = statistics.median(known)
    print(f"{name:<44} median {median:6.1f}  p95 {p95:6.1f}  p10 {p10:6.1f}  n = {len(known)}")


if __name__ == "__main__":
    main()
