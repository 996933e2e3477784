"""Evaluations on a real Dask scheduler and two worker processes, started here."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import psutil
import pytest
from evo_runs import QUIET, timeless
from killing import seen_by, serve_as_model
from toy import LIMITS, make_task

import evo
from evo.cli.entry import main
from evo.gate.server import OfflineServer
from evo.sandbox import EvaluatorClosed, SandboxError
from evo.sandbox.cluster import ClusterEvaluator, open_evaluator

if TYPE_CHECKING:
    import distributed

pytestmark = pytest.mark.slow

SLOW = """
import time
def construct():
    time.sleep(0.5)
    return [[{}, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
"""


def dask(workers: int) -> Any:
    """A scheduler and its workers, of one thread each, all of them processes."""
    from distributed.deploy.subprocess import SubprocessCluster

    return SubprocessCluster(
        n_workers=workers,
        threads_per_worker=1,
        worker_class="distributed.Worker",
        dashboard_address=None,
    )


def client_of(cluster: Any) -> distributed.Client:
    """A client; what it needs is loaded by the worker that runs these tests alone."""
    from distributed import Client

    return Client(cluster, set_as_default=False)


@pytest.fixture(scope="module", autouse=True)
def closing() -> Iterator[None]:
    """Distributed gives up closing where a child ended just before it was to be killed."""
    kill = psutil.Process.kill

    def kill_if_there(process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            kill(process)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psutil.Process, "kill", kill_if_there)
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with dask(2) as made:
        made.wait_for_workers(2, timeout=60)
        yield made


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[distributed.Client]:
    with client_of(cluster) as made:
        yield made


def children_of(log: evo.Log) -> list[bytes]:
    return sorted(timeless(list(log.children)))


def sandboxes(process: int) -> list[int]:
    """Processes that a worker started, as long as they live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


@pytest.mark.thorough
def test_the_same_seeds_give_the_same_log_as_here(
    cluster: Any, client: distributed.Client, tmp_path: Path
) -> None:
    shape = {"generations": 2, "children": 6, "seed": 5, **QUIET}
    here = evo.run("mmd", log=tmp_path / "here.jsonl", **shape)
    with joblib.parallel_config(backend="dask", client=client):
        there = evo.run("mmd", log=tmp_path / "there.jsonl", **shape)
        handle = evo.start("mmd", log=tmp_path / "started.jsonl", **shape)
    addressed = evo.run(
        "mmd", log=tmp_path / "a.jsonl", scheduler=cluster.scheduler_address, **shape
    )
    for log in (there, handle.wait(), addressed):
        assert children_of(log) == children_of(here)
        assert log.trajectory.tolist() == here.trajectory.tolist()
        assert [g.best for g in log.generations] == [g.best for g in here.generations]
        assert log.sessions[0].protections == here.sessions[0].protections
    # Both workers evaluated, each in a sandbox of its own.
    assert all(sandboxes(worker.process.pid) for worker in cluster.workers.values())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # it leaves its jobs' pipes to Python
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_workers_that_are_jobs_of_a_batch_system_evaluate_alike(tmp_path: Path) -> None:
    """`SLURMCluster` differs from this cluster in the command alone that submits a job.

    That several workers evaluate is tested above.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    jobqueue = pytest.importorskip("dask_jobqueue", reason="pip install dask-jobqueue")
    local = pytest.importorskip("dask_jobqueue.local")
    signal.signal(signal.SIGINT, interrupt)  # which the import has made an exit
    assert local.LocalCluster.__bases__ == jobqueue.SLURMCluster.__bases__
    shape = {"generations": 2, "children": 4, "seed": 5, **QUIET}
    here = evo.run("mmd", log=tmp_path / "here.jsonl", **shape)
    with (
        local.LocalCluster(
            cores=1, memory="2GB", scheduler_options={"dashboard_address": "127.0.0.1:0"}
        ) as cluster,
        client_of(cluster) as client,
    ):
        cluster.scale(jobs=1)
        client.wait_for_workers(1, timeout=60)
        assert "--nthreads 1" in cluster.job_script()
        with joblib.parallel_config(backend="dask", client=client):
            there = evo.run("mmd", log=tmp_path / "there.jsonl", **shape)
        evaluated = client.run(lambda: len(psutil.Process().children(recursive=True)))
    assert children_of(there) == children_of(here)
    assert there.trajectory.tolist() == here.trajectory.tolist()
    assert all(evaluated.values())  # the job has a sandbox of its own


def test_closing_ends_the_wait_of_other_threads(client: distributed.Client) -> None:
    evaluator = ClusterEvaluator(client)
    ends: list[BaseException] = []

    def work(number: int) -> None:
        try:
            evaluator.evaluate(make_task(), SLOW.format(number), LIMITS)
        except EvaluatorClosed as error:
            ends.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    evaluator.close()
    for thread in threads:
        thread.join(120)
    assert ends  # at most two at once were done


@pytest.mark.thorough
def test_a_worker_killed_mid_run_loses_nothing(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = tmp_path / "requests.jsonl"
    shape = {"generations": 3, "children": 8, "seed": 9, **QUIET}
    here = evo.run("mmd", log=tmp_path / "here.jsonl", **shape)
    with OfflineServer(request_log=requests) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        handle = evo.start(
            "mmd",
            model="served",
            scheduler=cluster.scheduler_address,
            log=tmp_path / "a.jsonl",
            **shape,
        )
        while not requests.exists() or len(seen_by(requests)) < 10:
            time.sleep(0.005)
        victim = cluster.workers[0].process.pid
        inside = sandboxes(victim)
        os.kill(victim, signal.SIGKILL)
        log = handle.wait(120)
        assert len(seen_by(requests)) == 24  # no call was repeated
    assert log.finished
    assert [child.program for child in sorted(log.children, key=place)] == [
        child.program for child in sorted(here.children, key=place)
    ]
    assert log.trajectory.tolist() == here.trajectory.tolist()
    assert not any("sandbox" in (child.evaluation.error or "") for child in log.children)
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{pid}").exists() for pid in inside):  # its sandbox dies with it
        assert time.monotonic() < deadline
        time.sleep(0.05)


def place(child: evo.logs.records.Child) -> tuple[int, int]:  # type: ignore[name-defined]
    return child.generation, child.index


def test_mistakes_are_one_line(
    cluster: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evo.sandbox.cluster._CONNECT_SECONDS", 0.5)
    run = ["run", "mmd", "-q"]
    for arguments, code, text in (
        (["--backend", "dask"], 2, "go together"),
        (["--scheduler", cluster.scheduler_address], 2, "go together"),
        (["--backend", "dask", "--scheduler", "tcp://127.0.0.1:1"], 2, "no Dask scheduler"),
    ):
        assert main([*run, *arguments]) == code
        (line,) = capsys.readouterr().err.splitlines()
        assert text in line
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install 'evo-replay\[dask\]'"):
        open_evaluator(None, cluster.scheduler_address)


@pytest.mark.thorough
def test_workers_without_this_package_or_none_at_all_are_said(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evo.sandbox.cluster._WORKER_SECONDS", 0.2)
    with (
        dask(0) as empty,
        client_of(empty) as lonely,
        pytest.raises(SandboxError, match="has no workers: start one with `dask worker tcp"),
    ):
        _ = ClusterEvaluator(lonely).protections
    evaluator = ClusterEvaluator(client)
    assert evaluator.protections
    monkeypatch.setattr("evo.sandbox.cluster.version", lambda _: "9.9")
    with pytest.raises(SandboxError, match=r"expected 9\.9 as here"):
        _ = evaluator.protections
