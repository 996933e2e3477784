"""What other tools really wrote, as logs that are checked, evaluated again and gone on with."""

from pathlib import Path

import pytest
from foreign_samples import write_openevolve

import evo
import replay
from evo.logs.journal import LogError
from evo.runs.verification import verify
from replay.cli.entry import main
from replay.importers import IMPORTERS, keep, read

SAMPLES = Path(__file__).resolve().parents[3] / "logs" / "samples"


@pytest.mark.parametrize("name", ["openevolve-1", "shinkaevolve-1"])
def test_a_full_import_is_a_log_like_ours(tmp_path, name):
    assert main(["import", "auto", str(SAMPLES / name), "--full", "--task", "mmd",
                 "-o", str(tmp_path)]) == 0  # fmt: skip
    path = tmp_path / f"{name}.jsonl"
    found = verify(path)
    assert (found.faults, found.task) == ((), "its task equals the shipped min_max_distance")
    log = evo.read_log(path)
    (run,) = read(SAMPLES / name)
    stated = max(c.evaluation.fitness for c in run.children if c.evaluation.status == "ok")
    assert log.best.evaluation.fitness == stated
    assert evo.evaluate("mmd", log.best.program).fitness == pytest.approx(stated, rel=1e-12)
    with_program = [child for child in log.children if child.program]
    assert len(with_program) > 30
    assert all(child.prompt and child.reply for child in with_program)
    assert sum(not child.parents for child in with_program) <= 1  # evicted before a checkpoint
    assert {child.island for child in with_program} == {0, 1}
    steps = replay.lineage(log)
    assert steps["program"].notna().all()
    again, places = evo.rescore(path), {(c.generation, c.index) for c in with_program}
    for ours, theirs in zip(again.outcomes, log.outcomes, strict=True):
        if (theirs.generation, theirs.index) not in places:
            assert ours.evaluation.fitness is None  # there is nothing to evaluate
        elif theirs.evaluation.status == "ok":
            fitness = pytest.approx(theirs.evaluation.fitness, rel=1e-12)
            assert ours.evaluation.fitness == fitness
    with pytest.raises(LogError, match="only runs of evo are played"):
        evo.rerun(path)


def test_a_folder_of_runs_is_a_pool(tmp_path):
    runs = read(SAMPLES, "shinkaevolve")
    assert [run.name for run in runs] == [f"shinkaevolve-{k}" for k in (1, 2, 3)]
    frame = replay.load(keep(runs, tmp_path))
    played = replay.simulate(replay.fitness_matrix(frame), "ucb1", rounds=12, replicates=5, arms=3)
    assert played.best_fitness.shape == (5, 12)
    mixed = {run.header.source for run in read(SAMPLES)}
    assert mixed == {"GEPA", "OpenEvolve", "ShinkaEvolve"}


def test_without_its_task_a_full_import_says_what_it_lacks(tmp_path, capsys):
    write_openevolve(tmp_path / "run")
    options = ["--full", "-o", str(tmp_path / "out")]
    assert main(["import", "openevolve", str(tmp_path / "run"), *options]) == 0
    assert "`--task FOLDER`" in capsys.readouterr().out
    path = tmp_path / "out" / "run.jsonl"
    assert evo.read_log(path).best.program == "print('b')"
    assert ", seed unknown, T=8 of N=1" in str(evo.read_log(path))
    assert replay.lineage(evo.read_log(path))["program"].tolist()[0] == "print('root')"
    with pytest.raises(LogError, match="imported without its task"):
        evo.rescore(path)


def test_what_is_no_log_of_the_tool_is_one_line(tmp_path, capsys):
    (tmp_path / "text.jsonl").write_text("hello\n")
    (tmp_path / "empty").mkdir()
    places = ("/dev/null", tmp_path / "text.jsonl", tmp_path / "empty", tmp_path / "nowhere")
    for name, path in ((name, path) for name in (*IMPORTERS, "auto", "levi") for path in places):
        assert main(["import", name, str(path), "-o", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "Traceback" not in said
        assert str(path) in said or "codeevolve, gepa, openevolve, paper" in said
    assert not (tmp_path / "out").exists()
