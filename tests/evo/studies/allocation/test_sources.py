"""What arms are made from: seeds, configurations and logs, and which are refused."""

import dataclasses
import os

import msgspec
import pytest

import evo
from evo.logs.log import read_log
from evo.studies.allocation.sources import arm_record, arm_sources, header_of

TASK = evo.load_task("mmd")


def sources(arms, task=TASK, **common):
    return arm_sources(task, arms, 40, {"children": 2, **common}, rounds=8)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("arms") / "a.jsonl"
    return evo.run("mmd", generations=1, children=1, seed=3, log=path, progress=False)


def test_a_number_of_arms_are_runs_of_consecutive_seeds():
    assert [header_of(each).seed for each in sources(3)] == [40, 41, 42]
    assert [header_of(each).seed for each in sources([7, 5])] == [7, 5]


def test_fields_of_an_arm_go_before_the_common_ones_and_a_seed_follows_its_place():
    first, second, third = sources([{"children": 3}, {"seed": 9}, {"temperature": 0.1}])
    assert [(each.seed, each.children) for each in (first, second, third)] == [
        (40, 3), (9, 2), (42, 2),
    ]  # fmt: skip
    assert third.sampling.temperature == 0.1


def test_a_log_is_an_arm_that_goes_on_and_is_named_from_the_folder(log, tmp_path):
    found, new = sources([log.path, 40])
    assert header_of(found).seed == 3
    record = arm_record(tmp_path, 0, found)
    assert (record.seed, record.logged) == (3, 1)
    assert os.path.normpath(tmp_path / record.log) == os.path.normpath(log.path)
    assert arm_record(tmp_path, 7, new).log == "arm-07.jsonl"


def test_a_task_of_another_wording_is_the_same_and_another_one_is_not(log):
    record = msgspec.structs.replace(TASK.record, statement="Other words.", hash="other")
    worded = dataclasses.replace(TASK, record=record)
    [arm] = sources([{"task": worded}])
    assert arm.task.statement == "Other words."
    with pytest.raises(ValueError, match=r"arm 1: its task may differ from .* in the statement"):
        sources([40, {"task": "cp"}])
    with pytest.raises(ValueError, match=r"a\.jsonl: a log of another task or version than circle"):
        sources([log], evo.load_task("cp"))


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (0, r"arms \(K\): expected at least 1, got 0"),
        ([], "arms: expected at least one"),
        ([5, 6, 5], "arm 0 and arm 2 have the same configuration and seed, 5; give each arm"),
        ([{"seed": 41}, 41], "arm 0 and arm 1 have the same configuration and seed, 41"),
    ],
)
def test_arms_that_are_none_or_the_same_are_refused(arms, message):
    with pytest.raises(ValueError, match=message):
        sources(arms)


def test_a_log_is_one_arm_alone(log):
    with pytest.raises(ValueError, match=r"a\.jsonl: expected each log as one arm, got it as two"):
        sources([log, read_log(log.path)])


def test_an_unknown_field_is_refused():
    with pytest.raises(TypeError, match="unknown argument 'childen'; did you mean 'children'"):
        sources([{"childen": 3}])
