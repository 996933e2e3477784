import json
import sys
from pathlib import Path

import pytest
from foreign_samples import USED, openevolve_program, statuses, trajectory, write_openevolve

import replay
from replay.importers import LogFormatError, detect, read, write

SAMPLES = Path(__file__).parents[3] / "logs" / "samples"


def test_the_union_of_checkpoints_trace_and_log(tmp_path):
    write_openevolve(tmp_path)
    assert detect(tmp_path) == "openevolve"
    (run,) = read(tmp_path)
    assert statuses(run) == [
        "ok", "ok", "timeout", "invalid", "no_program", "ok", None, None,
    ]  # fmt: skip
    assert trajectory(run) == [0.1, 0.1, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]
    assert run.children[5].evaluation.fitness == pytest.approx(0.3)  # the mean of numbers
    assert run.children[1].evaluation.metrics == {"area": 2.0}
    assert run.children[1].program == "print('b')"
    assert run.children[1].parents == ((0, 0),)
    assert run.children[3].reply == "prose"
    assert run.children[4].evaluation.error == "No valid code found in response"
    assert run.children[4].attempts[0].usage == {"prompt_tokens": 310, "completion_tokens": 40}
    assert run.children[5].attempts == ()
    assert run.children[7].attempts == ()
    assert [g.seconds for g in run.generations] == [None, None, None, 2.5, None, None, None, None]
    assert run.header.model.name == "m"
    assert "1 of 8 iterations, counted as failed calls" in run.lost
    assert "the fitness of 1 of 8 children" in run.lost


def test_a_trace_alone(tmp_path):
    trace = write_openevolve(tmp_path) / "evolution_trace.jsonl"
    (run,) = read(trace)
    assert statuses(run) == [None] * 3 + ["invalid"]
    assert trajectory(run)[0] == 0.4  # metrics of the parent that is nobody's child
    lines = trace.read_text()
    trace.write_text(lines + lines[: len(lines) // 2])
    (torn,) = read(trace)
    assert statuses(torn) == statuses(run)
    assert "torn last line" in torn.lost
    trace.write_text(lines[: len(lines) // 2] + "\n" + lines)
    with pytest.raises(LogFormatError, match=r"evolution_trace\.jsonl:1: not JSON"):
        read(trace)


def test_checkpoints_come_in_order_of_number_and_only_the_newest_may_be_torn(tmp_path):
    write_openevolve(tmp_path)
    newest = tmp_path / "checkpoints" / "checkpoint_10" / "programs" / "f.json"
    newest.write_text(newest.read_text()[:20])
    (run,) = read(tmp_path)
    assert "1 torn file of the newest checkpoint" in run.lost
    older = tmp_path / "checkpoints" / "checkpoint_5" / "programs" / "a.json"
    older.write_text(older.read_text()[:20])
    with pytest.raises(LogFormatError, match="checkpoint_5"):
        read(tmp_path)


def test_every_call_of_a_resumed_run_counts_in_the_order_of_its_sessions(tmp_path):
    write_openevolve(tmp_path)
    again = openevolve_program("a2", 1, {"combined_score": 0.2}) | {"timestamp": 5000.0}
    inside = tmp_path / "checkpoints" / "checkpoint_10" / "programs" / "a2.json"
    inside.write_text(json.dumps(again))
    (tmp_path / "logs" / "openevolve_1.log").unlink()
    zero = tmp_path / "checkpoints" / "checkpoint_5" / "programs" / "z.json"
    zero.write_text(json.dumps(openevolve_program("z", 0, {"combined_score": 0.35})))
    (run,) = read(tmp_path)  # iterations 0 to 6, then 1 to 8 again
    assert run.children[0].program == "print('z')"
    assert len(run.children) == 7 + 8
    zero.unlink()
    (run,) = read(tmp_path)  # iterations 1 to 6, then 1 to 8 again
    assert [child.program for child in run.children[:2]] == ["print('a')", "print('b')"]
    assert run.children[6].program == "print('a2')"
    assert len(run.children) == 6 + 8
    log = "2026 - INFO - Starting process-based evolution from iteration {} for 9 iterations\n"
    made = "2026 - INFO - Iteration {}: Program {} (parent: b) completed in 0.08s\n"
    logs = tmp_path / "logs"
    (logs / "openevolve_1.log").write_text(
        log.format(1) + "".join(made.format(k + 1, key) for k, key in enumerate("abcd"))
    )
    (logs / "openevolve_2.log").write_text(log.format(1) + made.format(1, "a2"))
    (run,) = read(tmp_path)  # iterations 1 to 4, then 1 to 8
    assert len(run.children) == 4 + 8
    assert run.children[4].program == "print('a2')"
    assert run.children[9].evaluation.fitness == pytest.approx(0.3)  # iteration 6
    assert "2 sessions follow one another" in run.lost
    assert trajectory(run)[-1] == 0.4


def test_a_run_takes_work_in_proportion_to_its_length(tmp_path):
    """Function calls are counted, since times depend on what else the machine does."""

    def calls_for(length):
        path = tmp_path / str(length) / "evolution_trace.jsonl"
        path.parent.mkdir()
        lines = (
            {"iteration": k, "parent_id": f"p{k - 1}", "child_id": f"p{k}",
             "parent_metrics": {"combined_score": 0.1}, "child_metrics": {"combined_score": 0.2}}
            for k in range(1, length + 1)
        )  # fmt: skip
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        counted = 0

        def count(frame, event, argument):
            nonlocal counted
            counted += event == "call"

        sys.setprofile(count)
        try:
            read(path)
        finally:
            sys.setprofile(None)
        return counted

    calls_for(10)  # what is loaded once
    assert calls_for(800) < 5 * calls_for(200)


def test_prompts_islands_and_parents_through_migrants(tmp_path):
    write_openevolve(tmp_path)
    asked = {"system": "Be good.", "user": "Improve.", "responses": ["I did."]}
    child = openevolve_program("g", 7, {"combined_score": 0.2}, "b-copy", island=1)
    child["prompts"] = {"full_rewrite_user": asked}
    inside = tmp_path / "checkpoints" / "checkpoint_10" / "programs" / "g.json"
    inside.write_text(json.dumps(child))
    (run,) = read(tmp_path)
    found = run.children[6]
    assert (found.reply, found.island) == ("I did.", 1)
    assert found.prompt == (("system", "Be good."), ("user", "Improve."))
    assert found.parents == ((2, 0),)  # of the program that the migrant is a copy of
    assert run.program == "print('root')"
    write(run, tmp_path / "a.jsonl")
    table = replay.children(tmp_path / "a.jsonl")
    assert table["parent_fitness"].tolist()[6] == 0.4
    with pytest.raises(ValueError, match=r"search 'greedy'.*OpenEvolve"):
        replay.fit_kernel(table)


def test_islands_with_initial_programs_of_their_own_leave_generation_0_to_the_first(tmp_path):
    write_openevolve(tmp_path)
    inside = tmp_path / "checkpoints" / "checkpoint_10" / "programs"
    other = openevolve_program("other", 0, {"combined_score": 0.7}, None, island=1)
    same = openevolve_program("same", 0, {"combined_score": 0.1}, None, island=2)
    same |= {"code": "print('root')"}
    of_other = openevolve_program("g", 7, {"combined_score": 0.2}, "other", island=1)
    of_same = openevolve_program("h", 8, {"combined_score": 0.2}, "same", island=2)
    for program in (other, same, of_other, of_same):
        program["timestamp"] += 1
        (inside / f"{program['id']}.json").write_text(json.dumps(program))
    (run,) = read(tmp_path)
    assert (run.program, run.initial.evaluation.fitness) == ("print('root')", 0.1)
    assert [child.parents for child in run.children[6:]] == [(), ((0, 0),)]
    assert "1 other initial program, with a fitness of up to 0.7" in run.lost


def test_a_trace_of_failures_has_what_was_asked_and_answered(tmp_path):
    write_openevolve(tmp_path)
    failures = [
        {
            "iteration": 5, "error": "No valid code found in response", "parent_id": "b",
            "island_id": 1, "token_usage": USED, "llm_response": "prose",
            "prompt": {"system": "Be good.", "user": "Improve."},
        },
        {"iteration": 8, "error": "Iteration timed out after 90s", "parent_id": None},
    ]  # fmt: skip
    lines = "".join(json.dumps(failure) + "\n" for failure in failures)
    (tmp_path / "evolution_trace_failures.jsonl").write_text(lines)
    (run,) = read(tmp_path)
    found = run.children[4]
    assert (found.evaluation.status, found.reply, found.island) == ("no_program", "prose", 1)
    assert found.parents == ((2, 0),)
    assert found.prompt == (("system", "Be good."), ("user", "Improve."))
    assert found.attempts[0].usage == {"prompt_tokens": 300, "completion_tokens": 40}
    assert run.children[7].evaluation.error == "Iteration timed out after 90s"
    assert "counted as failed calls" not in run.lost
    (tmp_path / "logs" / "openevolve_1.log").unlink()
    (alone,) = read(tmp_path)
    assert alone.children[4] == found


def test_skydiscover_adds_failed_iterations(tmp_path):
    write_openevolve(tmp_path, code="solution")
    for unused in ("evolution_trace.jsonl", "logs/openevolve_1.log"):
        (tmp_path / unused).unlink()
    assert detect(tmp_path) == "skydiscover"
    child = {"id": "g", "metrics": {"combined_score": 0.6}, "parent_id": "b"}
    lines = [
        {"iteration": 4, "iteration_result": {"error": "No valid diffs found in response"}},
        {
            "iteration": 7,
            "iteration_result": {"iteration_time_seconds": 3.0, "child_program": child},
        },
        {"iteration": 9, "iteration_result": {"error": "LLM generation failed: refused"}},
    ]
    statistics = tmp_path / "adaevolve_iteration_stats_1.jsonl"
    statistics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,) = read(tmp_path)
    assert run.header.source == "SkyDiscover"
    assert statuses(run) == [
        "ok", "ok", "timeout", "no_program", None, "ok", "ok", None, "no_reply",
    ]  # fmt: skip
    assert run.children[1].program == "print('b')"
    assert run.children[1].parents == ((0, 0),)
    assert run.generations[6].seconds == 3.0
    assert run.generations[-1].best_fitness == 0.6
    (alone,) = read(statistics)
    assert alone.children[-1].evaluation.error == "LLM generation failed: refused"
    assert alone.initial is None
    assert run.children[0].attempts[0].usage == {
        key: USED[key] for key in ("prompt_tokens", "completion_tokens")
    }
