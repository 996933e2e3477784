"""Versions of a task, and the settings of a run in words."""

import re

import msgspec
import pandas as pd
import pytest
from samples import sample_header, sample_lines

import evo
from evo.filters.registry import records_of
from evo.logs.hashes import hash_of_task
from evo.logs.journal import encode_line
from evo.logs.records import FilterRecord, Header, Model, Sampling, SearchRecord
from evo.searches.registry import record_of
from replay.logs.versions import (
    scoring_of,
    settings_text,
    told_apart,
    version_of,
    what_differs,
)

replaced = msgspec.structs.replace


def edited(header: Header, text="# changed\n", name="evaluator.py") -> Header:
    task = header.task
    files = {**task.files, name: task.files[name] + text}
    task = msgspec.structs.replace(task, files=files)
    return msgspec.structs.replace(
        header, task=msgspec.structs.replace(task, hash=hash_of_task(task))
    )


def test_a_version_changes_with_what_scores_or_with_what_is_given_alone():
    header = sample_lines()[0]
    assert isinstance(header, Header)
    base = version_of(header.task)
    scored = version_of(edited(header).task)
    begun = version_of(edited(header, name=header.task.program_file).task)
    assert scored.split(".")[1] == base.split(".")[1] != begun.split(".")[1]
    assert begun.split(".")[0] == base.split(".")[0] != scored.split(".")[0]
    assert version_of(msgspec.structs.replace(header.task, files={})) == ""


def test_a_version_is_that_of_the_files_whatever_hash_a_log_states():
    task = sample_lines()[0].task
    other = msgspec.structs.replace(task, files={**task.files, task.evaluator_file: "# other\n"})
    for order in ([task, other], [other, task]):
        known = {each.files[each.evaluator_file]: version_of(each) for each in order}
    assert len({*known.values()}) == 2
    assert version_of(other) == version_of(msgspec.structs.replace(other, hash="0"))


def test_notes_of_an_evaluator_are_no_part_of_a_version():
    task = sample_lines()[0].task
    files = {**task.files, "evaluator_notes.py": "# notes\n"}
    noted = msgspec.structs.replace(task, files=files, notes_file="evaluator_notes.py")
    assert hash_of_task(noted) == hash_of_task(task)
    assert version_of(noted) == version_of(task)


def test_settings_name_what_is_not_the_default():
    header = sample_lines()[0]
    plain = replaced(header, sampling=replaced(header.sampling, max_tokens=8192))
    assert settings_text(plain) == ""
    filters = records_of([evo.filters.NearDuplicates(ratio=0.9)])
    changed = replaced(
        plain, feedback=True, draws=3, filters=filters, statement="Try.",
        sampling=replaced(plain.sampling, temperature=1.0),
        search=record_of(evo.searches.Population(size=7)),
    )  # fmt: skip
    text = settings_text(changed)
    for part in ("feedback", "draws 3", "ratio=0.9", "statement ", "temperature 1.0", "size=7"):
        assert part in text
    assert settings_text(replaced(plain, search=record_of("population"))) == ""
    other = records_of([evo.filters.NearDuplicates(ratio=0.8)])
    assert settings_text(replaced(changed, filters=other)) != text


PLAIN = replaced(
    sample_header(), sampling=Sampling(temperature=None, top_p=None, max_tokens=None), search=None
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"feedback": True}, "feedback"),
        ({"draws": 3, "asynchronous": True}, "asynchronous; draws 3"),
        ({"min_improvement": 0.0}, "min_improvement 0.0"),
        ({"min_improvement": 0.0, "source": "openevolve"}, ""),  # an import states its own
        ({"model_policy": "ucb1"}, ""),
        ({"model_policy": "random"}, "model_policy random"),
        ({"sampling": Sampling(temperature=0.5, top_p=None, max_tokens=None)}, "temperature 0.5"),
        ({"filters": (FilterRecord(name="own", version=1, source="abcdefgh"),)},
         "filters own(source abcdef)"),
        ({"filters": (FilterRecord(name="x", version=1), FilterRecord(name="y", version=1,
          fields={"a": 1, "b": "c"}))}, "filters x + y(a=1, b=c)"),
        ({"search": SearchRecord(name="greedy", version=1)}, ""),
        ({"search": SearchRecord(name="mine", version=1, fields={"k": 2}, source="0123456789")},
         "mine(k=2, source 012345)"),
        ({"model": Model(name="m", version="v2")}, "model version v2"),
    ],
)  # fmt: skip
def test_settings_are_named_as_far_as_they_are_not_the_default(change, words):
    assert settings_text(replaced(PLAIN, **change)) == words


def test_a_temperature_that_is_the_models_own_is_no_setting():
    usual = Model(name="m", temperature=0.5)
    given = Sampling(temperature=0.5, top_p=0.9, max_tokens=None)
    assert settings_text(replaced(PLAIN, model=usual, sampling=given)) == "top_p 0.9"
    imported = replaced(PLAIN, model=usual, sampling=given, source="shinka")
    assert settings_text(imported) == ""
    several = replaced(PLAIN, model=usual, sampling=given, models=(usual,))
    assert settings_text(several) == ""  # each of several models has its own


def test_texts_are_named_by_their_hashes():
    one, other = (settings_text(replaced(PLAIN, statement=each)) for each in ("Try.", "Retry."))
    assert one != other
    assert re.fullmatch(r"statement [0-9a-f]{6}", one)
    bodies = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}]
    texts = [
        settings_text(replaced(PLAIN, model=Model(name="m", extra_body=body))) for body in bodies
    ]
    assert texts[0] == texts[1] != texts[2]


def test_the_part_before_the_point_is_what_scores():
    assert scoring_of("9c51.77") == "9c51"
    assert scoring_of("") == ""


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("task_version", ["9c.7", "", None],
         ["task version 9c.7", "task version unknown", "task version unknown"]),
        ("children", [1, 16], ["children 1", "children 16"]),
        ("settings", ["a; b; c", "b; d", "b"], ["a, c", "d", "all else as by default"]),
        ("settings", ["a", ""], ["a", "all else as by default"]),
        ("settings", ["a; b", "b", None], ["a", "all else as by default", "settings unknown"]),
        ("settings", [None, None], ["settings unknown"] * 2),
    ],
)  # fmt: skip
def test_names_leave_out_what_all_share(column, values, words):
    assert told_apart(column, pd.Series(values, dtype=object)).tolist() == words


def frame_of(*versions, **columns):
    rows = {"task": "toy", "run": [f"r{k}" for k in range(len(versions))]}
    return pd.DataFrame({**rows, "task_version": versions, **columns})


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        (("9c51.77", "9c51.77", "88aa.77"), "so that their fitness has no common scale"),
        (("9c51.77", "9c51.77", "9c51.00"), "so that they are not alike"),
    ],
)
def test_two_versions_are_named_with_their_runs_and_the_way_out(versions, why):
    text = what_differs(frame_of(*versions, ""))
    assert f"got '9c51.77' (2 runs, such as r0), '{versions[-1]}' (1 run, such as r2) of toy" in (
        text
    )
    assert "its evaluator, its instances, its statement or its program changed" in text
    assert f", {why}; select one with frame[frame.task_version == '{versions[-1]}'] or" in text
    assert f"or `--where task_version={versions[-1]}`, and repeat the others" in text


def test_what_changed_is_read_from_the_logs(tmp_path):
    first, *rest = sample_lines()
    headers = [first, edited(first), edited(first, name=first.task.program_file)]
    sources = [tmp_path / f"{k}.jsonl" for k in range(3)]
    for path, header in zip(sources, headers, strict=True):
        path.write_bytes(b"".join(map(encode_line, [header, *rest])))
    versions = [version_of(header.task) for header in headers]
    text = what_differs(frame_of(*versions, source=[*map(str, sources)]))
    assert f": evaluator.py and {first.task.program_file} changed between them" in text
    sources[0].write_text("damaged")
    sources[1].unlink()
    unknown = what_differs(frame_of(*versions, source=[*map(str, sources)]))
    assert "its evaluator, its instances, its statement or its program changed" in unknown
