import pytest
from foreign_samples import statuses

from replay.importers import read


def test_every_way_in_which_a_text_log_tells_of_a_failed_call(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "openevolve_1.log").write_text(
        "2026 - INFO - Starting process-based evolution from iteration 1 for 5 iterations\n"
        "2026 - INFO - Iteration 1: Program a (parent: r) completed in 1.68s"
        " | tokens: 12 (prompt: 10, completion: 2)\n"
        "2026 - INFO - Metrics: combined_score=0.5000\n"
        "2026 - WARNING - Iteration 2 error: LLM generation failed: Connection error.\n"
        "2026 - WARNING - Iteration 3 error [diff]: Diff did not change the parent program"
        " | tokens: 33 (prompt: 30, completion: 3)\n"
        "2026 - ERROR - Error processing result from iteration 4: a worker died\n"
        "2026 - ERROR - \u23f0 Iteration 5 timed out after 90s (evaluator timeout: 60s + 30s "
        "buffer). Canceling future and continuing with next iteration.\n"
    )
    (run,) = read(tmp_path)
    assert statuses(run) == ["ok", "no_reply", "no_program", None, None]
    assert [child.evaluation.error for child in run.children[2:]] == [
        "Diff did not change the parent program", "a worker died", "timed out after 90s",
    ]  # fmt: skip
    assert run.children[2].attempts[0].usage == {"prompt_tokens": 30, "completion_tokens": 3}


def written(folder, *lines):
    """Writes a text log with a first iteration and further lines, and returns its folder."""
    (folder / "logs").mkdir(parents=True)
    begin = (
        "Starting process-based evolution from iteration 1 for 4 iterations",
        "Iteration 1: Program a (parent: r) completed in 1.68s",
        "Metrics: combined_score=0.5000",
    )
    text = "".join(f"2026 - openevolve - INFO - {line}\n" for line in (*begin, *lines))
    (folder / "logs" / "openevolve_1.log").write_text(text)
    return folder


REJECTED = "Database rejected program 7f2a"


def test_programs_that_the_database_rejects_are_the_iterations_without_a_line(tmp_path):
    third = "Iteration 3 error: LLM returned None response"
    (run,) = read(written(tmp_path / "whole", REJECTED, third, REJECTED))
    assert statuses(run) == ["ok", "rejected", "no_reply", "rejected"]
    assert "not novel" in run.children[1].evaluation.error
    assert "2 of 4 programs, which the tool refused, and their fitness" in run.lost
    assert "not in the source" not in {child.evaluation.error for child in run.children}
    (run,) = read(written(tmp_path / "earlier", REJECTED.replace("Database", "Admission strategy")))
    assert statuses(run) == ["ok", "rejected"]
    fifth = "Iteration 5 error: LLM returned None response"
    (run,) = read(written(tmp_path / "under-way", REJECTED, fifth))  # which of three is not told
    assert statuses(run) == ["ok", None, None, None, "no_reply"]


@pytest.mark.parametrize(
    "error",
    [
        "Unmatched SEARCH/REPLACE delimiter outside a diff block",
        "Malformed SEARCH/REPLACE delimiter sequence",
        "Ambiguous diff block: SEARCH matches both code and changes_description",
        "EVOLVE-BLOCK markers were changed or removed; expected 1 evolve block(s)",
    ],
)
def test_a_reply_whose_blocks_cannot_be_applied_has_no_program(tmp_path, error):
    (run,) = read(written(tmp_path, f"Iteration 2 error [diff]: {error}"))
    assert statuses(run) == ["ok", "no_program"]
