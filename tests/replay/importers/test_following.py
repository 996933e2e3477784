"""Runs of other tools that are read while the tools write them."""

import json
import shutil
import time
from pathlib import Path

import pytest
from foreign_samples import execute, statuses, write_openevolve, write_shinka

from evo.logs.log import read_log
from replay.importers import read
from replay.importers.following import Followed, places

LINE = "2026 - openevolve.process_parallel - INFO - "
MADE = LINE + "Iteration {}: Program {} (parent: {}) completed in 0.10s | tokens: 7 (prompt: 3, "
MADE += "completion: 4)\n"


def look(followed: Followed) -> bool:
    """A look that does not wait for its share of the time."""
    followed._again = 0.0
    return followed.refresh()


@pytest.mark.parametrize("write", [write_openevolve, write_shinka])
def test_what_is_followed_is_what_is_imported(write, tmp_path: Path) -> None:
    write(tmp_path / "deep" / "out") if write is write_shinka else write(_made(tmp_path))
    [(tool, place)] = places(tmp_path)
    followed = Followed(place, tool)
    assert look(followed)
    assert not look(followed)
    log = read_log(followed.logs[0])
    [run] = read(place)
    assert [child.evaluation for child in log.outcomes] == [c.evaluation for c in run.children]
    assert [child.parents for child in log.outcomes] == [c.parents for c in run.children]


def _made(folder: Path) -> Path:
    (folder / "deep" / "out").mkdir(parents=True)
    return folder / "deep" / "out"


def test_a_state_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    folder = write_shinka(tmp_path / "out")
    followed = Followed(folder, "shinkaevolve")
    assert look(followed)
    database = folder / "programs.sqlite"
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    assert not look(followed)
    assert len(read_log(followed.logs[0]).outcomes) == 5
    assert followed.problem == ""
    followed.changed -= 60.0  # nothing has changed for a minute
    assert "programs.sqlite" in followed.problem
    database.write_bytes(whole)
    copy = "INSERT INTO programs SELECT 'n', code, 'e', 6, 20.0, 0.95, 1, public_metrics, "
    execute(database, [copy + "text_feedback, metadata FROM programs WHERE id = 'e'"])
    assert look(followed)
    log = read_log(followed.logs[0])
    assert log.outcomes[5].parents == ((5, 0),)
    assert log.trajectory[-1] == 0.95
    assert followed.problem == ""


def test_less_than_before_is_believed_once_it_stays(tmp_path: Path) -> None:
    folder = write_openevolve(tmp_path)
    (folder / "evolution_trace.jsonl").unlink()
    followed = Followed(folder, "openevolve")
    assert look(followed)
    shutil.rmtree(folder / "checkpoints" / "checkpoint_10")
    assert not look(followed)
    assert read_log(followed.logs[0]).status_counts["ok"] == 3
    assert look(followed)
    assert read_log(followed.logs[0]).status_counts["ok"] == 2


def test_a_text_log_tells_of_children_before_the_first_checkpoint(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "openevolve_1.log"
    log.parent.mkdir()
    log.write_text(LINE + "Logging\n")
    [(tool, place)] = places(tmp_path)
    followed = Followed(place, tool)
    assert not look(followed)
    assert followed.logs == []
    metrics = LINE + "Metrics: combined_score={:.4f}, area={:.4f}\n"
    text = MADE.format(1, "a", "root") + metrics.format(0.25, 2)
    text += MADE.format(2, "b", "a") + LINE + "Metrics: timeout=1.0000, error=0.0000\n"
    text += LINE + "Iteration 3 error: No valid code found in response\n"
    text += MADE.format(4, "d", "a") + LINE + "Metrics: error=NameError: x, y, combined_score="
    text += "0.0000\n" + MADE.format(5, "e", "root")
    log.write_text(text)
    assert look(followed)
    [run] = read(place)
    assert statuses(run) == ["ok", "timeout", "no_program", "error", None]
    assert [child.parents for child in run.children[:4]] == [((0, 0),), ((1, 0),), (), ((1, 0),)]
    first = run.children[0]
    assert (first.evaluation.fitness, first.evaluation.metrics) == (0.25, {"area": 2.0})
    assert first.attempts[0].usage == {"prompt_tokens": 3, "completion_tokens": 4}
    assert run.children[3].evaluation.error == "NameError: x, y"
    assert "3 of 5 programs, whose fitness is known to four decimals" in run.lost


def test_places_pass_over_environments_hidden_folders_and_engines(tmp_path: Path) -> None:
    for name in ("env", ".hidden", "arm-00", "tool"):
        write_shinka(tmp_path / name / "out")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "arm-00" / "gate.jsonl").write_text("{}\n")
    (tmp_path / "arm-00.jsonl").write_text(json.dumps({}))
    assert list(places(tmp_path)) == [("shinkaevolve", tmp_path / "tool" / "out")]
    assert list(places(tmp_path / "gone")) == []
    assert time.time() - Followed(tmp_path, "x").changed > 60
