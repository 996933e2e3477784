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
