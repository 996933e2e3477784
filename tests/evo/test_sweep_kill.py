"""A sweep killed at 20 moments: the same frame as without, and no logged call made again."""

import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from test_kill import finish, kill_after, seen_by, serve_as_model

import evo
import replay
from evo.llm.server import OfflineServer

FILE = """
task = "mmd"
seeds = [3, 4]
strategy = {{name = "guided", top_k = 2, explore_ratio = 0.4}}
trials = 10
[base]
model = "served"
[space]
children = {{min = 2, max = 9}}
generations = [{short}, {long}]
"""


def timeless(frame: pd.DataFrame) -> pd.DataFrame:
    """A sweep's frame without what depends on the clock and the place."""
    return frame.drop(columns=["seconds", "log", "dollars"])


def asked_again(logged: Counter[int], asked: list[int]) -> set[int]:
    return set(logged) & set(asked)


@pytest.mark.slow
def test_kill_9_at_20_random_moments_of_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(3)
    folder, requests, file = tmp_path / "killed", tmp_path / "requests.jsonl", tmp_path / "s.toml"
    file.write_text(FILE.format(short=6, long=14))
    runs = folder / "runs"
    command = ["sweep", str(file), "--log-dir", str(folder), "-q"]
    kills = 0
    with OfflineServer(request_log=requests) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        logged: Counter[int] = Counter()
        before = 0
        for _ in range(20):
            runs.mkdir(parents=True, exist_ok=True)
            ended = kill_after(command, runs, draws.randint(0, 8), draws.random() * 0.2)
            kills += not ended
            asked = seen_by(requests)
            assert not asked_again(logged, asked[before:]), "a logged call was made again"
            before = len(asked)
            logged = Counter(
                outcome.seed
                for path in runs.glob("*.jsonl")
                if path.read_bytes().count(b"\n")
                for outcome in evo.read_log(path).outcomes
            )
            if ended:
                break
        finish(command)
        finish(["sweep", str(file), "--log-dir", str(tmp_path / "whole"), "-q"])
    assert kills == 20
    killed, whole = (replay.load_sweep(tmp_path / name) for name in ("killed", "whole"))
    assert (killed["status"] == "completed").all()
    pd.testing.assert_frame_equal(timeless(killed), timeless(whole))
    assert all(not evo.verify(path).faults for path in runs.glob("*.jsonl"))
