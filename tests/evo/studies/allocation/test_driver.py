import functools
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tiers import thorough_after

import evo
import replay
from evo.cli.entry import main
from evo.gate.server import OfflineServer
from evo.logs.journal import LogError
from evo.models.client import EndpointDown
from evo.policies import POLICIES, UCB1, IndexPolicy, PolicyWarning
from evo.policies.base import Floats
from evo.studies.allocation.journal import read_journal

SMALL = {"rounds": 12, "children": 2, "progress": False}
LONE = {**SMALL, "children": 1}


@pytest.fixture(scope="module")
def separate(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """Fitness of separately made runs of arm seeds 40 ... 49, deep enough for any allocation."""
    folder = tmp_path_factory.mktemp("separate")
    evo.run_many(
        "mmd", seeds=range(40, 50), generations=12, children=1, log_dir=folder, progress=False
    )
    return replay.fitness_matrix(replay.load(folder))


def check_live_equals_replay(policy: str, seed: int, separate: np.ndarray, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # 12 rounds are few for 10 arms
        live = evo.allocate_live("mmd", policy, arms=10, seed=seed, log_dir=folder, **LONE)
        own = replay.simulate(
            replay.fitness_matrix(replay.load(folder)),
            policy,
            rounds=12,
            replicates=1,
            seed=seed,
            missing="stop",
        )
        apart = replay.simulate(separate, policy, rounds=12, replicates=3, seed=seed)
    assert own.pulls[0].tolist() == live.pulls.tolist()
    assert own.best_fitness[0].tolist() == live.best_fitness.tolist()
    assert own.rewards[0].tolist() == live.rewards.tolist()
    assert apart.pulls[0].tolist() == live.pulls.tolist()
    assert apart.best_fitness[0].tolist() == live.best_fitness.tolist()


SOME = ("ucb1", "thompson", "exp3p")


@pytest.mark.parametrize("policy", SOME)
def test_live_equals_replay(policy: str, separate: np.ndarray, tmp_path: Path) -> None:
    check_live_equals_replay(policy, 3, separate, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("policy", thorough_after(3, sorted({*POLICIES} - {*SOME})))
def test_live_equals_replay_for_every_policy(
    policy: str, separate: np.ndarray, tmp_path: Path
) -> None:
    check_live_equals_replay(policy, 1, separate, tmp_path)


def told(folder: Path) -> int:
    """Rounds in a journal that may not have begun."""
    try:
        return len(read_journal(folder / "allocation.jsonl").told)
    except LogError:
        return 0


@pytest.mark.parametrize("in_flight", [1, 3])
def test_an_allocation_stops_where_an_arm_is_told_to(in_flight: int, tmp_path: Path) -> None:
    setting: dict[str, Any] = {"arms": 3, "in_flight": in_flight, **SMALL, "rounds": 60}
    folder = tmp_path / "a"
    handle = evo.start_allocation("mmd", "thompson", log_dir=folder, **setting)
    deadline = time.monotonic() + 60
    while told(folder) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert main(["stop", str(folder)]) == 0
    stopped = handle.wait(60)
    assert 4 <= len(stopped.told) < 60
    assert {log.ends[-1].reason for log in stopped.arms} == {"interrupted"}
    assert not list(folder.glob("*.stop"))
    assert len(evo.allocate_live("mmd", "thompson", log_dir=folder, **setting).told) == 60


def test_allocation_goes_on_from_any_line(tmp_path: Path) -> None:
    whole = evo.allocate_live("mmd", "thompson", arms=3, log_dir=tmp_path / "whole", **SMALL)
    journal = (tmp_path / "whole" / "allocation.jsonl").read_bytes().splitlines(keepends=True)
    for kept in range(1, len(journal), 8):
        folder = tmp_path / f"part{kept}"
        folder.mkdir()
        (folder / "allocation.jsonl").write_bytes(b"".join(journal[:kept]) + b'{"crc')
        for log in whole.arms[: kept % 4]:  # some arms' logs are there, and one of them is torn
            (folder / log.path.name).write_bytes(log.path.read_bytes()[:-40])
        again = evo.allocate_live("mmd", "thompson", arms=3, log_dir=folder, **SMALL)
        assert again.pulls.tolist() == whole.pulls.tolist()
        assert again.best_fitness.tolist() == whole.best_fitness.tolist()
        rounds = read_journal(folder / "allocation.jsonl")
        assert [t.digest for t in rounds.told.values()] == [
            t.digest for t in read_journal(tmp_path / "whole" / "allocation.jsonl").told.values()
        ]


def test_budget_ends_live_and_replayed_alike(tmp_path: Path) -> None:
    budget = {"calls": 9.0, "tokens": 1e9}
    live = evo.allocate_live(
        "mmd", "round_robin", arms=3, budget=budget, log_dir=tmp_path / "a", **SMALL
    )
    assert (live.pulls >= 0).sum() == 5  # 2 calls a pull: none begins once 9 are reached
    frame = replay.load(tmp_path / "a")
    again = replay.simulate(
        replay.fitness_matrix(frame),
        "round_robin",
        rounds=12,
        replicates=1,
        costs=replay.cost_matrices(frame),
        budget=budget,
        missing="stop",
    )
    assert again.pulls[0].tolist() == live.pulls.tolist()
    for unit in ("calls", "tokens", "flops", "dollars"):
        assert again.spent[unit][0].tolist() == pytest.approx(live.spent[unit].tolist())


MODELS = """
["cheap"]
id = "offline"
base_url = "{url}"
active_parameters = 1000
input_price = 0.1
output_price = 1.0
temperature = 0.2

["dear"]
id = "offline"
base_url = "{url}"
active_parameters = 5000
input_price = 10.0
output_price = 100.0
"""


def test_a_policy_chooses_among_models_within_a_budget_in_any_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = [{"model": "cheap"}, {"model": "dear", "temperature": 1.2, "children": 1}]
    budget = {"dollars": 1e-4, "calls": 50, "tokens": 1e6, "flops": 1e12, "seconds": 1e4}
    with OfflineServer() as server:
        (tmp_path / "models.toml").write_text(MODELS.format(url=server.url))
        monkeypatch.setenv("EVO_MODELS", str(tmp_path / "models.toml"))
        live = evo.allocate_live(
            "mmd",
            "round_robin",
            arms=arms,
            budget=budget,
            in_flight=2,
            log_dir=tmp_path / "a",
            **SMALL,
        )
    headers = [log.header for log in live.arms]
    assert [header.model.name for header in headers] == ["cheap", "dear"]
    assert [header.sampling.temperature for header in headers] == [0.2, 1.2]
    made = len(live.told)
    assert 1 <= made < 12
    assert all(live.spent[unit][0] > 0 for unit in budget)
    spent = live.spent["dollars"]
    assert spent[made - 1] >= 1e-4
    assert made == 1 or spent[made - 2] < 1e-4  # one exceeds it, whatever was in flight


def test_a_failing_endpoint_ends_rounds_in_flight_resumably(tmp_path: Path) -> None:
    dead = evo.Model(name="dead", base_url="http://127.0.0.1:9/v1")
    arms = [{}, {"model": dead}]
    arguments = {"arms": arms, "in_flight": 2, "log_dir": tmp_path, "retries": 0, **SMALL}
    with pytest.raises(EndpointDown, match="does not answer: 1 attempt, which ended in"):
        evo.allocate_live("mmd", "round_robin", **arguments)
    journal = read_journal(tmp_path / "allocation.jsonl")
    assert {0: 0, 1: 1}.items() <= journal.asked.items()
    assert 1 not in journal.told
    with pytest.raises(EndpointDown, match="does not answer"):
        evo.allocate_live("mmd", "round_robin", **arguments)


def test_a_listener_hears_nothing_of_an_arm_that_was_never_pulled(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    made = evo.allocate_live(
        evo.load_task("wp", instances=3), "round_robin", arms=3, rounds=2, children=1,
        log_dir=tmp_path, progress=False, on_event=lambda e: heard.append((e.path.name, e.kind)),
    )  # fmt: skip
    assert made.pulls.tolist() == [0, 1]
    assert {name for name, _ in heard} == {"arm-00.jsonl", "arm-01.jsonl"}
    assert [kind for name, kind in heard if name == "arm-00.jsonl"][-1] == "end"
    assert [log.ends[-1].reason for log in made.arms] == ["completed"] * 3


@pytest.mark.parametrize("task", ["mmd", "wp"])
def test_a_stop_before_the_first_pull_returns_an_allocation_that_goes_on(
    task: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"arms": 2, "rounds": 3, "children": 1, "log_dir": tmp_path}
    known = evo.load_task(task, instances=3 if task == "wp" else None)
    handle = evo.start_allocation(known, "ucb1", progress=False, **given)
    handle.stop()
    assert len(handle.wait(60).told) < 3
    again = evo.allocate_live(known, "ucb1", progress=False, **given)
    assert len(again.told) == 3
    assert not any(evo.verify(log).faults for log in again.arms)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_no_journal_can_hold_is_refused_before_anything_is_made(
    number: float, tmp_path: Path
) -> None:

    class Patient(UCB1):
        def __init__(self, shape: tuple[int, int], *, patience: float, **common: Any) -> None:
            super().__init__(shape, **common)

    mistakes: list[dict[str, Any]] = [
        {"policy": "ucb1", "budget": {"calls": number}},
        {"policy": functools.partial(UCB1, c=number)},
        {"policy": functools.partial(Patient, patience=number)},
    ]
    for mistake in mistakes:
        with pytest.raises(ValueError, match="finite"):
            evo.allocate_live("mmd", arms=2, log_dir=tmp_path / "a", **mistake, **SMALL)
    assert not (tmp_path / "a").exists()


class Own(IndexPolicy):
    """Pulls arm 0 as long as it is open."""

    def index(self) -> Floats:
        return -np.arange(float(self.arms))[None]


@pytest.mark.parametrize(
    ("policy", "parameters"),
    [
        ("exp3ix", {"reward_range": (0.0, 2.0)}),
        ("ucb1", {"c": np.linspace(0, 1, 3)[1]}),
    ],
)
def test_an_allocation_goes_on_whatever_type_its_policys_parameters_have(
    policy: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    build = functools.partial(POLICIES[policy], **parameters)
    settings = {"arms": 2, "rounds": 2, "children": 1, "log_dir": tmp_path, "progress": False}
    first = evo.allocate_live("mmd", build, **settings)
    again = evo.allocate_live("mmd", build, **settings)
    np.testing.assert_array_equal(again.pulls, first.pulls)
    assert [len(log.children) for log in again.arms] == [len(log.children) for log in first.arms]


def test_a_policy_of_ones_own_is_known_by_its_code(tmp_path: Path) -> None:
    given: dict[str, Any] = {**SMALL, "arms": 2, "rounds": 2, "children": 1, "log_dir": tmp_path}
    evo.allocate_live("mmd", Own, **given)
    path = tmp_path / "allocation.jsonl"
    assert len(read_journal(path).header.source) == 64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evo.allocate_live("mmd", Own, **given)

        class Other(Own):
            def index(self) -> Floats:
                return -np.arange(float(self.arms))[None] - 1.0

        Other.__name__ = "Own"
    with pytest.warns(UserWarning, match="the code of policy 'own' is not that which began"):
        evo.allocate_live("mmd", Other, **given)


def test_a_journal_tells_a_built_in_policy_from_one_that_replaced_it(tmp_path: Path) -> None:
    given: dict[str, Any] = {**SMALL, "arms": 2, "rounds": 1, "children": 1, "log_dir": tmp_path}
    evo.allocate_live("mmd", "single", **given)
    assert b'"source"' not in (tmp_path / "allocation.jsonl").read_bytes().splitlines()[0]
    with patch.dict(POLICIES):
        POLICIES.replace("single", Own)
        with pytest.warns(UserWarning, match="the code of policy 'single' is not that"):
            evo.allocate_live("mmd", "single", **given)
        POLICIES.replace("single", POLICIES.built_in["single"])


def test_another_allocation_in_the_folder_is_refused(tmp_path: Path) -> None:
    evo.allocate_live("mmd", "ucb1", arms=2, log_dir=tmp_path, **{**SMALL, "rounds": 2})
    with pytest.raises(ValueError, match="seed 0, not 1"):
        evo.allocate_live("mmd", "ucb1", arms=2, seed=1, log_dir=tmp_path, **{**SMALL, "rounds": 2})


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"reward": "applause"}, "applause"),
        ({"budget": {"euros": 3}}, "euros"),
        ({"budget": {"calls": float("nan")}}, "calls"),
        ({"policy": functools.partial(UCB1, d=1)}, r"unknown parameter 'd' \(known: c\)"),
        ({"policy": ("ucb1", {"c": 1})}, r"expected the name of a policy.*functools\.partial"),
        ({"c": 0.1}, r"unknown argument 'c'; functools\.partial\(POLICIES\[name\], \.\.\.\) sets"),
    ],
)
def test_mistakes_leave_nothing(tmp_path: Path, mistake: dict[str, Any], message: str) -> None:
    arguments = {"policy": "ucb1", "log_dir": tmp_path / "a", **SMALL, **mistake}
    with pytest.raises((ValueError, TypeError), match=message):
        evo.allocate_live("mmd", arms=2, **arguments)
    assert not (tmp_path / "a").exists()


def test_what_a_policy_learned_stands_in_the_journal_and_going_on_needs_no_earlier_runs(
    tmp_path: Path,
) -> None:
    """Live equals replay, the journal names the runs, and an arm among them is refused."""
    setting: dict[str, Any] = {"generations": 4, "children": 2, "progress": False}
    logs = evo.run_many("mmd", seeds=range(6), log_dir=tmp_path / "earlier", **setting)
    arms: dict[str, Any] = {"arms": 3, "rounds": 6, "children": 2, "progress": False}
    folder = tmp_path / "a"
    made = evo.allocate_live("mmd", "freeze_thaw", earlier=logs, log_dir=folder, **arms)
    header = read_journal(folder / "allocation.jsonl").header
    assert header.reward == "best_fitness"
    assert [*header.learned_from] == [*replay.load(tmp_path / "earlier")["header"].unique()]
    again = evo.allocate_live("mmd", "freeze_thaw", log_dir=folder, **arms)
    assert again.pulls.tolist() == made.pulls.tolist()
    earlier = replay.fitness_matrix(replay.load(tmp_path / "earlier"))
    played = replay.simulate(
        replay.fitness_matrix(replay.load(folder)), "freeze_thaw", rounds=6, replicates=1,
        earlier=earlier, missing="stop",
    )  # fmt: skip
    assert played.pulls[0].tolist() == made.pulls.tolist()
    with pytest.raises(ValueError, match=r"runs that are no arms, but they share the seeds \[0, 1"):
        evo.allocate_live("mmd", "freeze_thaw", earlier=logs, arm_seed=0, **arms)
    with pytest.raises(ValueError, match="expected a policy that learns"):
        evo.allocate_live("mmd", "ucb1", earlier=logs, **arms)
