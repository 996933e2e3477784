import json

import pytest
from foreign_samples import execute, statuses, trajectory, write_shinka

from replay.importers import LogFormatError, detect, read


def test_programs_failures_and_missing_work_items(tmp_path):
    write_shinka(tmp_path / "results")
    assert detect(tmp_path / "results") == "shinkaevolve"
    (run,) = read(tmp_path / "results")
    assert run.name == "results"
    assert statuses(run) == ["ok", None, "no_program", None, "ok"]
    assert trajectory(run) == [0.1, 0.2, 0.2, 0.2, 0.2, 0.9]
    first, wrong, told, absent, _ = run.children
    assert first.attempts[0].usage == {
        "prompt_tokens": 100,
        "completion_tokens": 10,  # the reasoning included
        "dollars": pytest.approx(0.3),
    }
    assert (first.reply, first.program, run.program) == ("reply", "# a", "# r")
    assert first.prompt == (("system", "Be good."), ("user", "Improve."))
    assert [child.parents for child in run.children] == [((0, 0),), ((1, 0),), (), (), ((1, 0),)]
    assert first.evaluation.metrics == {"area": 2.0}
    assert first.evaluation.seconds == 1.25
    assert (wrong.evaluation.fitness, wrong.evaluation.error) == (None, "wrong shape")
    assert told.evaluation.error == "no code"
    assert absent.attempts == ()
    assert [g.seconds for g in run.generations] == [2.5, 2.5, None, None, 2.5]
    assert (run.header.sampling.temperature, run.header.sampling.max_tokens) == (0.7, 500)
    assert "1 copy of" in run.lost
    assert "1 of 5 proposals" in run.lost
    assert "all calls but the last for each program" in run.lost  # attempts, judges, advice


def test_an_old_database_without_the_newer_columns(tmp_path):
    write_shinka(tmp_path, old=True)
    (run,) = read(tmp_path)
    assert statuses(run) == ["ok", None, None, None, "ok"]
    assert all(child.attempts == () for child in run.children)
    assert all(generation.seconds is None for generation in run.generations)


def test_the_last_program_of_a_generation_counts(tmp_path):
    database = write_shinka(tmp_path) / "programs.sqlite"
    columns = "id, code, generation, timestamp, combined_score, correct"
    insert = f"INSERT INTO programs ({columns}) VALUES (?, ?, 1, ?, ?, 1)"
    more = (("late", 99.0, 0.3), ("early", 1.0, 0.4))
    execute(database, *((insert, key, key, when, score) for key, when, score in more))
    (run,) = read(tmp_path)
    assert run.children[0].program == "late"
    assert trajectory(run)[:3] == [0.1, 0.3, 0.3]
    assert "2 further programs of generation 1" in run.lost


def test_a_copy_onto_an_island_that_begins_later_is_no_child(tmp_path):
    database = write_shinka(tmp_path) / "programs.sqlite"
    columns = "id, code, parent_id, generation, timestamp, combined_score, correct, metadata"
    insert = f"INSERT INTO programs ({columns}) VALUES (?, '# c', ?, ?, ?, ?, 1, ?)"
    spawned = json.dumps({"_spawned_island": True, "_spawned_from_program_id": "a"})
    execute(
        database,
        (insert, "copy-of-a", None, 1, 99.0, 0.2, spawned),
        (insert, "c", "copy-of-a", 6, 100.0, 0.3, "{}"),
    )
    (run,) = read(tmp_path)
    assert (run.children[0].program, run.children[0].parents) == ("# a", ((0, 0),))
    assert run.children[5].parents == ((1, 0),)
    assert "2 copies of the initial program or between islands" in run.lost
    assert "further program" not in run.lost


def test_reading_leaves_the_database_alone(tmp_path):
    write_shinka(tmp_path)
    database = tmp_path / "programs.sqlite"
    before = database.read_bytes()
    read(tmp_path)
    assert database.read_bytes() == before
    assert list(tmp_path.iterdir()) == [database]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE programs", "missing"),
        ("ALTER TABLE programs RENAME COLUMN correct TO right", "'correct'"),
        ("UPDATE programs SET generation = 'first' WHERE id = 'a'", "'first'"),
        ("UPDATE programs SET generation = -1 WHERE id = 'a'", "-1"),
        ("UPDATE programs SET generation = 100001 WHERE id = 'a'", "from 0 to 100000"),
        ("UPDATE programs SET metadata = '{' WHERE id = 'a'", "'a': metadata"),
        ("UPDATE programs SET metadata = x'ff' WHERE id = 'a'", "expected text"),
    ],
)
def test_damage_names_the_file(tmp_path, statement, message):
    database = write_shinka(tmp_path) / "programs.sqlite"
    execute(database, [statement])
    with pytest.raises(LogFormatError, match=message) as caught:
        read(tmp_path)
    assert str(database) in str(caught.value)
