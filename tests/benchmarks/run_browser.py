"""Opening a log of 10,000 children in the run browser, and going on to the next child.

    python tests/benchmarks/run_browser.py [--generations 625] [--children 16] [--moves 60]

The log is synthetic: programs of some 60 lines that change a little from child to child, replies of
about 6 kB, every tenth child a failure. Printed are the bytes of the log, the time from `browse`
until the browser has all that it draws (imports done before), and of moves to the next child and
the next improvement, each from the call until the browser has its texts, wall and CPU time, and
the CPU time of the picture's share. Where there is a Chromium, also the time from a key on the
picture, in a page without a kernel, to the frame after it, beside that of a bare element that
changes one word.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import msgspec  # noqa: E402
from browser import lab  # noqa: E402
from samples import sample_header, sample_lines  # noqa: E402

import replay  # noqa: E402
from evo.logs.journal import encode_line  # noqa: E402
from evo.logs.records import Child, Evaluation, Generation, Header, Line  # noqa: E402
from replay.explorers.run_browser import RunBrowser  # noqa: E402
from replay.explorers.run_data import look_at  # noqa: E402


def synthetic(generations: int, children: int) -> bytes:
    """A log whose fitness creeps up."""
    draws = random.Random(1)
    base = sample_header(children).task.files["initial_program.py"].splitlines()
    words = "Let me think about the constants of this construction once more. " * 60
    lines: list[Line] = []
    best, place, better = 0.1, (0, 0), False
    for line in sample_lines(generations=generations, children=children):
        match line:
            case Child():
                program = [*base, *(f"x{k} = {draws.random():.6f}" for k in range(12))]
                program[draws.randrange(len(base))] += f"  # {draws.random()}"
                text = "\n".join(program)
                ok = draws.random() > 0.1
                fitness = best * draws.uniform(0.5, 1.0) + (draws.random() < 0.002) * 0.02
                if ok and fitness > best:
                    best, place, better = fitness, (line.generation, line.index), True
                evaluation = (
                    Evaluation(status="ok", fitness=fitness, metrics={"objective": fitness})
                    if ok
                    else Evaluation(status=draws.choice(["error", "invalid"]), error="boom")
                )
                changed = {"program": text, "reply": words + text, "evaluation": evaluation}
                lines.append(msgspec.structs.replace(line, **changed))
            case Generation():
                changed = {"best": place, "best_fitness": best, "improved": better}
                lines.append(msgspec.structs.replace(line, **changed))
                better = False
            case Header() | _:
                lines.append(line)
    return b"".join(map(encode_line, lines))


def measure(path: Path, moves: int) -> None:
    """Open a log and move through it."""
    start, busy = time.perf_counter(), time.thread_time()
    browser = replay.browse(path)
    first, busy = time.perf_counter() - start, time.thread_time() - busy
    assert browser._screen.run
    print(f"{path.name:<16} first view {first:6.2f} s, CPU {busy:.2f} s")
    for to, step in (("child", -1), ("child", 1), ("improvement", -1), ("failure", 1)):
        taken, worked = [], []
        for _ in range(moves):
            before, start, busy = browser._screen.at, time.perf_counter(), time.thread_time()
            if not browser.hop(to, step):
                break
            taken.append(1e3 * (time.perf_counter() - start))
            worked.append(1e3 * (time.thread_time() - busy))
            assert browser._screen.at != before
        if taken:
            p95 = sorted(taken)[int(0.95 * (len(taken) - 1))]
            name = f"{'next' if step > 0 else 'previous'} {to}"
            print(
                f"  {name:<22} median {statistics.median(taken):6.1f} ms  p95 {p95:6.1f} ms  "
                f"CPU {statistics.median(worked):5.1f} ms  n = {len(taken)}"
            )
    shares = []
    for k in range(moves):
        view = look_at(browser._view.data, browser._view.data.places[k])
        browser._view, busy = view, time.thread_time()
        browser._draw(coarse=False)
        shares.append(1e3 * (time.thread_time() - busy))
    print(f"  {'the picture of a move':<22} CPU {statistics.median(shares):.2f} ms  n = {moves}")
    if lab.chromium():
        in_page(browser, path, moves)
    browser.close()


KEYS = """async ([moves]) => {
  const root = document.querySelector('.replay-run'), found = {bare: [], run: []};
  const bare = Object.assign(document.createElement('b'), {tabIndex: 0, textContent: '0'});
  bare.onkeydown = () => { bare.textContent = +bare.textContent + 1; };
  document.body.prepend(bare);
  const [run] = root.querySelectorAll('[role=application]');
  for (let k = 0; k < 2 * moves; k++) {
    await new Promise((done) => setTimeout(done, 30));
    const target = k % 2 ? run : bare, began = performance.now();
    target.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
    const drawn = performance.now();
    await new Promise((done) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    }));
    found[k % 2 ? 'run' : 'bare'].push([performance.now() - began, drawn - began]);
  }
  return found;
}"""
"""Goes to the child before; milliseconds to the frame after the key, and to the end of drawing."""


def in_page(browser: RunBrowser, path: Path, moves: int) -> None:
    """Move by keys in a page that was saved."""
    saved = browser.save(path.with_suffix(".html"))
    with lab.browser(width=1400) as (page, _):
        page.goto(saved.as_uri())
        page.wait_for_selector(".replay-run svg")
        for name, taken in page.evaluate(KEYS, [moves]).items():
            frames, drawn = (sorted(column) for column in zip(*taken, strict=True))
            p95 = int(0.95 * (len(frames) - 1))
            print(
                f"  a key, {name:<15} to pixels median {statistics.median(frames):6.1f} ms  "
                f"p95 {frames[p95]:6.1f} ms  drawing {statistics.median(drawn):.2f} ms"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generations", type=int, default=625)
    parser.add_argument("--children", type=int, default=16)
    parser.add_argument("--moves", type=int, default=60)
    given = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        small, plain = Path(folder) / "warm.jsonl", Path(folder) / "large.jsonl"
        small.write_bytes(synthetic(3, 2))
        warm = replay.browse(small)  # imports, fonts, the sandbox
        warm.settle()
        warm.close()
        data = synthetic(given.generations, given.children)
        plain.write_bytes(data)
        packed = Path(folder) / "large.jsonl.gz"
        packed.write_bytes(gzip.compress(data, 6))
        print(f"{given.generations * given.children:,} children, {len(data) / 1e6:.0f} MB")
        for path in (plain, packed):
            measure(path, given.moves)


if __name__ == "__main__":
    main()
