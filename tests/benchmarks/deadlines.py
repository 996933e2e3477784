"""How late the deadline and cancelling are in each phase of a request, of client and gate.

    python tests/benchmarks/deadlines.py

An endpoint on raw sockets is slow for ever in one phase: the lookup of its name, connecting, TLS,
a proxy's CONNECT, taking the request, before its head, within its head or its body. A call has a
deadline of .5 s; another one is cancelled after .3 s, by `cancel` at the client and by leaving at
the gate. Printed are the seconds by which each ended late. The goal: at most .2 s.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import PHASES, stuck_in, text_of

from evo.gate.gate import Gate
from evo.logs.records import Model, Sampling
from evo.models.client import CallCancelled, EndpointError, ModelClient
from evo.models.limits import Slots

DEADLINE, CANCELLED, MOST = 0.5, 0.3, 0.2
SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)
LONG = 30.0


def ask(url: str, text: str, timeout: float, *, cancels: bool) -> float:
    """Seconds by which a call of the client ended late."""
    client = ModelClient(
        Model(name="m", base_url=url), SAMPLING, slots=Slots(1), timeout=timeout, retries=0
    )
    with contextlib.closing(client):
        timer = threading.Timer(CANCELLED, client.cancel)
        if cancels:
            timer.start()
        began = time.monotonic()
        with contextlib.suppress(CallCancelled, EndpointError):
            client.call([{"role": "user", "content": text}], seed=1)
        return time.monotonic() - began - (CANCELLED if cancels else DEADLINE)


@contextlib.contextmanager
def sent(gate: Gate, text: str) -> Iterator[http.client.HTTPConnection]:
    """A connection to a gate over which a request was sent."""
    host = gate.address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=LONG)
    with contextlib.closing(connection):
        body = json.dumps({"messages": [{"role": "user", "content": text}], "max_tokens": 9})
        connection.request("POST", "/v1/chat/completions", body)
        yield connection


def pass_gate(url: str, text: str, timeout: float, *, cancels: bool) -> float:
    """Seconds by which a request at a gate was settled late."""
    with Gate(Model(name="m", base_url=url), timeout=timeout) as gate:
        with sent(gate, text) as connection:
            while not gate.account.in_flight:
                time.sleep(0.001)
            began = time.monotonic()
            if not cancels:
                assert connection.getresponse().status == 504
                return time.monotonic() - began - DEADLINE
            time.sleep(CANCELLED)
        began = time.monotonic()
        while gate.account.in_flight:
            time.sleep(0.001)
        return time.monotonic() - began


def main() -> None:
    late = []
    with stuck_in("TLS") as url:  # the first call of a process loads libraries and certificates
        ask(url, "child 0", DEADLINE, cancels=False)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        print(f"{'':18} client: deadline  cancelled   gate: deadline  cancelled   (seconds late)")
        for phase in PHASES:
            row = []
            for way in (ask, pass_gate):
                for cancels in (False, True):
                    with stuck_in(phase) as url:
                        timeout = LONG if cancels else DEADLINE
                        row.append(way(url, text_of(phase), timeout, cancels=cancels))
            late += row
            print(f"{phase:18} {row[0]:16.3f} {row[1]:10.3f} {row[2]:16.3f} {row[3]:10.3f}")
    print(f"load {os.getloadavg()[0]:.1f}: at most {max(late):.3f} s late; the goal: {MOST} s")


if __name__ == "__main__":
    main()
