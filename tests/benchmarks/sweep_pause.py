"""How soon a sweep heeds a wish made by another process.

    python tests/benchmarks/sweep_pause.py [--pauses 5]

A sweep calls the offline model over HTTP with a latency of about half a second, and `evo pause` is
called in another process. Measured is how long after the wish the last request arrived at the
server (below 0: before it), and when the sweep had ended with all that was in flight logged. The
bar: no request begins later than 1 s after the wish.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import evo
from evo.llm.offline.latency import Latency
from evo.llm.server import OfflineServer
from evo.sweeping.events import EventLog

MODEL = '["served"]\nid = "offline"\nbase_url = "{url}/v1"\n'


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pauses", type=int, default=5)
    pauses = parser.parse_args().pauses
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        log = place / "requests.jsonl"
        with OfflineServer(request_log=log, latency=Latency(0.5, 0.5)) as server:
            began = time.time()
            (place / "models.toml").write_text(MODEL.format(url=server.url.removesuffix("/v1")))
            os.environ["EVO_MODELS"] = str(place / "models.toml")
            sweep = evo.start_sweep(
                {"temperature": [0.2, 0.9]}, task="mmd", seeds=[1, 2], generations=1000,
                children=4, model="served", log_dir=place / "s", progress=False,
            )  # fmt: skip
            for _ in range(pauses):
                before = lines(log)
                while lines(log) < before + 20:
                    time.sleep(0.02)
                subprocess.run([sys.executable, "-m", "evo", "pause", place / "s"], check=True,
                               capture_output=True)  # fmt: skip
                sweep.wait()
                events = EventLog(place / "s")
                wish = [e.time for e in events.refresh() if e.event == "pause_requested"][-1]
                ended = events.events[-1].time
                requests = [json.loads(line) for line in log.read_text().splitlines()]
                last = began + max(each["received"] for each in requests)
                asked = sorted(each["seed"] for each in requests)
                paths = place / "s".glob("runs/*.jsonl")
                logged = sorted(o.seed for path in paths for o in evo.read_log(path).outcomes)
                print(
                    f"last request {last - wish:+.2f} s, end {ended - wish:.2f} s after the wish; "
                    f"{len(asked)} calls answered, {len(logged)} logged, "
                    f"{'the same' if asked == logged else 'NOT the same'}"
                )
                sweep = evo.start_sweep(place / "s", progress=False)
            sweep.pause()
            sweep.wait()


if __name__ == "__main__":
    main()
