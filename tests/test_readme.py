"""What the README says, done as it says, and every file that it shows is in git."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import evo
import replay
from evo.models.registry import find_model

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", ["README.md", "logs/README.md", "CONTRIBUTING.md"])
def test_links_and_pictures_are_in_git(page: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    known = set(listed.stdout.splitlines())
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if "://" not in target:
            path = ((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix()
            assert path in known or any(name.startswith(f"{path}/") for name in known), target


def test_a_folder_with_two_files_is_a_task(tmp_path: Path) -> None:
    (tmp_path / "initial_program.py").write_text("def f():\n    return 0.25\n")
    (tmp_path / "evaluator.py").write_text(
        "import runpy\n\ndef evaluate(program_path):\n"
        "    return {'combined_score': runpy.run_path(program_path)['f']()}\n"
    )
    assert evo.evaluate(tmp_path, "def f():\n    return 0.5\n").fitness == 0.5


def test_a_value_may_be_scored_apart_from_the_program(tmp_path: Path) -> None:
    (tmp_path / "initial_program.py").write_text("def solve():\n    return 1\n")
    (tmp_path / "evaluator.py").write_text("def score(value):\n    return {'fitness': value / 4}\n")
    (tmp_path / "task.toml").write_text('entry = ["solve"]\n')
    assert evo.evaluate(tmp_path, "def solve():\n    return 3\n").fitness == 0.75


def test_a_data_set_is_one_object_a_line(tmp_path: Path) -> None:
    (tmp_path / "initial_program.py").write_text("def solve(x):\n    return x\n")
    (tmp_path / "problems.jsonl").write_text('{"input": 2, "want": 4}\n{"input": 3, "want": 3}\n')
    (tmp_path / "evaluator.py").write_text(
        "def score(value, instance):\n    return float(value == instance['want'])\n"
    )
    (tmp_path / "task.toml").write_text('entry = ["solve"]\ninstances = "problems.jsonl"\n')
    found = evo.evaluate(tmp_path, "def solve(x):\n    return 2 * x\n")
    assert found.fitness == 0.5


def test_a_model_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "notebooks" / "guide" / "own_task.md").read_text()
    (stated,) = re.findall(r"```toml\n# file: models.toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "models.toml").write_text(stated)
    monkeypatch.setenv("EVO_MODELS", str(tmp_path / "models.toml"))
    ((name, fields),) = tomllib.loads(stated).items()
    model = find_model(name)
    assert {field: getattr(model, field) for field in fields} == fields


def test_commands_and_options_in_the_table_exist(capsys: pytest.CaptureFixture[str]) -> None:
    from evo.cli.entry import main as evo_main
    from replay.cli.entry import main as replay_main

    table = README.split("## Commands", 1)[1].split("## Map", 1)[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    assert len(rows) >= 7
    for row in rows:
        first = row.split("|")[1]
        named = re.findall(r"`(evo|replay) (\w+)", first)
        (program,) = {each for each, _ in named}
        named += [(program, word) for word in re.findall(r"`(\w+)`", first)]
        for program, command in named:
            assert {"evo": evo_main, "replay": replay_main}[program]([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert not [name for name in re.findall(r"(?<!\w)--[a-z-]+", row) if name not in shown], row


def test_the_results_of_a_real_model_are_those_of_the_shipped_logs() -> None:
    corpus, stated = (
        ROOT / "logs" / "corpus",
        re.compile(
            r"^\| `(local-tsp\S*)`, \w+ \| T = (\d+), N = (\d+) \| (\d+) \| (.+) \|$", re.MULTILINE
        ),
    )
    rows = stated.findall(README)
    assert len(rows) == 4
    for folder, generations, children, n, interval in rows:
        frame = replay.load(corpus / folder, progress=False)
        ends = frame[frame["children"] == int(children)].groupby("run").last()
        assert set(ends["generation"]) == {int(generations)}
        found = replay.interval(ends["best_fitness"])
        assert f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]" == interval
        assert found.n == int(n)


def test_three_lines_open_the_logs_of_another_tool_and_the_fourth_asks_for_five_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anywidget", reason="explorers need the extra [notebook]")
    block = README.split("## Your own logs", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
    *opening, judging = block.splitlines()
    (tmp_path / "openevolve_output").mkdir()
    for written in (ROOT / "logs/samples").glob("openevolve-[123]"):
        (tmp_path / "openevolve_output" / written.name).symlink_to(written)
    monkeypatch.chdir(tmp_path)
    names = {"replay": replay}
    with pytest.warns(UserWarning, match="read . runs? of openevolve, which lack"):
        exec("\n".join(opening), names)
    assert names["frame"]["run"].nunique() == 3
    with pytest.raises(ValueError, match="at least five runs"):
        exec(judging, names)


def test_the_decision_that_is_quoted_is_the_one_of_the_shipped_runs() -> None:
    (quoted,) = re.findall(r'it begins: "(.+?)"', " ".join(README.split()))
    frame = replay.load(ROOT / "logs/corpus/local-tsp-policies", progress=False)
    assert replay.advise(replay.judge(frame, "thompson", "single")).startswith(quoted)
