import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from samples import write_lines
from test_report import pool
from tiers import thorough_after

import evo
from evo.logs.log import line_decoder
from replay.cli.entry import main
from replay.cli.options import Form

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    """Exit code of the command; argparse leaves by SystemExit."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code


def one_line(text):
    return text.count("\n") == 1 and "Traceback" not in text and text.startswith("replay")


# Report


def test_report_writes_where_it_is_told_and_the_same_each_time(here, capsys):
    evo.run("mmd", generations=2, children=3, seed=1, log="logs/a.jsonl", progress=False)
    assert run("report", "logs") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Decision\n====")
    assert "min_max_distance, model offline (not an LLM)\n===" in captured.out
    assert "the offline model is a random rewriter, not an LLM" in captured.out
    assert captured.out.rstrip().endswith("figures: report.png")
    assert captured.err == ""
    assert (here / "report.png").read_bytes().startswith(b"\x89PNG")
    for suffix, first in (("svg", b"<?xml"), ("pdf", b"%PDF")):
        paths = [here / name / f"page.{suffix}" for name in ("one", "two")]
        for path in paths:
            assert run("report", "logs", "-o", path, "--theme", "dark") == 0
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert paths[0].read_bytes().startswith(first)
    assert "best of 1 runs: seed 1" in (here / "one" / "page.svg").read_text()


def test_report_of_policies(here, capsys):
    pool(here / "logs", runs=8, generations=8)
    options = ("--policies", "ucb1,thompson", "--set", "ucb1.c=0.1,1", "--replicates", "100")
    assert run("report", "logs", *options, "--arms", "3", "--rounds", "6", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    policies = {cell["of"] for cell in found["cells"] if cell["kind"] == "policy"}
    assert policies == {"single", "random", "ucb1 c=0.1", "ucb1 c=1", "thompson"}
    tables = " ".join({cell["table"] for cell in found["cells"]})
    setting = "N = 3, K = 3 arms of n = 8 runs, reward best_fitness, 100 replicates"
    assert f"after 6 pulls ({setting})" in tables
    assert all(cell["n"] == 8 for cell in found["cells"])


@pytest.mark.parametrize(
    "form", thorough_after(1, [each for each in get_args(Form) if each != "text"])
)
def test_every_format_of_tables_has_a_short_form(here, capsys, form):
    pool(here / "logs", runs=3)
    assert run("report", "logs", f"--{form}") == 0
    short = capsys.readouterr().out
    assert run("report", "logs", "--format", form) == 0
    assert capsys.readouterr().out == short


def test_groups_too_small_for_policies_are_said(here, capsys):
    pool(here / "many", runs=4, children=2)
    pool(here / "few", runs=2, children=5)
    options = ("--policies", "ucb1", "--replicates", "50", "--arms", "2")
    assert run("report", "many", "few", *options) == 0
    captured = capsys.readouterr()
    few = "N = 5: policies are compared on at least 3 runs, there are 2: 1 more is needed"
    assert few in captured.err
    assert "Policies after" in captured.out
    assert "undetermined (+" in captured.out or "undetermined (-" in captured.out
    lack = "twice as many as arms; for K = 2 there are 4: 1 more is needed"
    assert lack in " ".join(captured.out.split())
    assert run("report", "few", *options) == 2


def test_damaged_logs_are_refused_or_left_out(here, capsys):
    pool(here / "logs", runs=3)
    good = next((here / "logs").glob("*.jsonl")).read_bytes()
    (here / "logs" / "bad.jsonl").write_bytes(good.replace(b'"seed":', b'"sead":', 1))
    assert run("report", "logs") == 2
    assert "bad.jsonl:1" in capsys.readouterr().err
    assert run("report", "logs", "--skip-damaged") == 0
    captured = capsys.readouterr()
    assert "1 of 4 logs were left out" in captured.err
    (here / "logs" / "bad.jsonl").write_bytes(b"of another tool\n")
    assert run("report", "logs") == 0
    assert "bad.jsonl: not a log of evo; `replay import" in capsys.readouterr().err


def test_plans_and_verdicts_leave_damaged_logs_out_too(here, capsys):
    pool(here / "logs", runs=6, children=2)
    pool(here / "others", runs=6, children=4)
    for command in (
        ("plan", "logs", "--budget", "64"),
        ("judge", "children=2", "children=4", "logs", "others"),
        ("judge", "logs/*", "others"),
    ):
        (here / "logs" / "bad.jsonl").unlink(missing_ok=True)
        assert run(*command) == 0
        sound = capsys.readouterr()
        log = next((here / "logs").glob("*.jsonl")).read_bytes()
        (here / "logs" / "bad.jsonl").write_bytes(log.replace(b'"seed":', b'"sead":', 1))
        assert run(*command) == 2
        assert "--skip-damaged" in capsys.readouterr().err
        assert run(*command, "--skip-damaged") == 0
        left = capsys.readouterr()
        assert left.out == sound.out
        assert " logs were left out" in left.err


# Mistakes

MISTAKES = {
    "no log": ("report", "missing"),
    "empty folder": ("report", "empty"),
    "empty path": ("report", ""),
    "suffix": ("report", "logs", "-o", "page.gif"),
    "format": ("report", "logs", "--json", "--csv"),
    "short formats": ("report", "logs", "--markdown", "--latex"),
    "format twice": ("report", "logs", "--format", "latex", "--csv"),
    "unknown format": ("report", "logs", "--format", "word"),
    "policy": ("report", "logs", "--policies", "nonsense"),
    "parameter": ("report", "logs", "--policies", "ucb1", "--set", "ucb1.z=1"),
    "parameter value": ("report", "logs", "--policies", "ucb1", "--set", "ucb1.c=-1"),
    "setting": ("report", "logs", "--policies", "ucb1", "--set", "c=high"),
    "setting of another": ("report", "logs", "--policies", "random", "--set", "ucb1.c=1"),
    "no policies": ("report", "logs", "--rounds", "5"),
    "reward": ("report", "logs", "--policies", "ucb1", "--reward", "money"),
    "rounds": ("report", "logs", "--policies", "ucb1", "--rounds", "0"),
    "arms": ("report", "logs", "--policies", "ucb1", "--arms", "many"),
    "tau": ("report", "logs", "--tau", "nan"),
    "unwritable": ("report", "logs", "-o", "file/page.png"),
    "export format": ("export", "nonsense", "logs", "-o", "out"),
    "export log": ("export", "paper", "missing", "-o", "out"),
    "plan budget": ("plan", "logs", "--budget", "nan"),
    "plan unit": ("plan", "logs", "--budget", "dollars=3"),
    "plan nothing": ("plan", "logs", "--budget", "0"),
    "plan earlier": ("plan", "logs", "--budget", "64", "--earlier", "logs"),
    "plan cost": ("plan", "logs", "--budget", "64", "--cost", "weather=1"),
    "command": ("nonsense",),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(here, capsys, name):
    pool(here / "logs", runs=4)
    (here / "empty").mkdir()
    (here / "file").write_text("not a folder")
    assert run(*MISTAKES[name]) == 2
    captured = capsys.readouterr()
    assert one_line(captured.err), captured.err
    assert captured.out == ""
    assert not list(here.glob("*.png"))


def test_no_command_shows_the_help(capsys):
    assert run() == 2
    assert "report" in capsys.readouterr().out
    done = subprocess.run([sys.executable, "-m", "replay", "--help"], capture_output=True, cwd=ROOT)
    assert (done.returncode, b"report" in done.stdout) == (0, True)


def test_help_is_quick_and_loads_nothing_heavy():
    heavy = {"matplotlib", "pandas", "scipy", "openai", "ipywidgets"}
    code = (
        "import sys\nfrom replay.cli.entry import main\nsys.stdout = sys.stderr\nmain(['--help'])\n"
        "sys.stdout = sys.__stdout__\n"
        f"print(*sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == []


# The other commands


def test_plan_prints_a_recommendation_and_draws_it(here, capsys):
    pool(here / "logs", runs=4, generations=6, children=2)
    assert run("plan", "logs", "--budget", "16", "--best", "0") == 2
    assert "expected best= to be the best known fitness, got 0.0" in capsys.readouterr().err
    assert run("plan", "logs", "--budget", "calls=16", "--tau", "0.9") == 0
    out = capsys.readouterr().out
    assert out.startswith("No advice: no other way to spend 16 is clearly ahead of T = N")
    assert "recommended" not in out  # beside no advice
    assert "would have been advised for a lead of more than" in out
    assert "no forecast of the fitness: beyond what the pilot saw" in out
    assert out.index("default\n") < out.index("not forecast\n")
    assert "nan" not in out
    assert out.rstrip().endswith("figure: plan.png")
    assert (here / "plan.png").exists()


def test_plans_of_several_configurations_name_them_and_have_a_figure_each(here, capsys):
    for path in pool(here / "at 1", runs=3, generations=4).glob("*.jsonl"):
        header, *lines = map(line_decoder.decode, path.read_bytes().splitlines())
        for temperature in (0.2, 1.0):
            at = msgspec.structs.replace(header.sampling, temperature=temperature)
            header = msgspec.structs.replace(header, sampling=at)
            write_lines(here / f"at {temperature:g}" / path.name, [header, *lines])
    assert run("plan", "at *", "--budget", "calls=8", "-o", "p.svg") == 0
    out = capsys.readouterr().out
    figures = [line.partition(": ")[2] for line in out.splitlines() if line.startswith("figure")]
    assert len(set(figures)) == 2
    for figure, temperature in zip(figures, (0.2, 1), strict=True):
        assert f"temperature {temperature:g}: n = 3 runs" in out
        assert f"temperature-{temperature:g}" in figure
        assert f"temperature {temperature:g}: a budget of 8" in (here / figure).read_text()


def test_each_task_is_planned_that_can_be(here, capsys):
    pool(here / "logs", runs=6, generations=4)
    rows = "".join(f"{run},{order},0,greedy,flat\n" for run in range(3) for order in range(1, 4))
    (here / "flat.csv").write_text("run,order,fitness,search,task\n" + rows)
    assert run("plan", "logs", "flat.csv", "--budget", "calls=16") == 0
    captured = capsys.readouterr()
    assert "flat, unknown: no plan is made: expected best=" in captured.err
    assert captured.out.count("figure: plan-") == 1
    assert run("plan", "flat.csv", "--budget", "calls=16") == 2
    assert "flat, unknown: expected best=" in capsys.readouterr().err


def test_a_table_of_other_columns_is_imported_by_their_names(here, capsys):
    (here / "mine.csv").write_text("config,island,step,score\na,0,1,.1\na,1,1,.2\n")
    columns = "run=config,run=island,order=step,fitness=score"
    assert run("import", "table", "mine.csv", "--columns", columns, "-o", "out") == 0
    assert {path.name for path in (here / "out").iterdir()} == {"a_0.jsonl", "a_1.jsonl"}
    capsys.readouterr()
    for wrong, message in (("runs=config", "did you mean 'run'"), ("run", "OURS=THEIRS such as")):
        assert run("import", "table", "mine.csv", "--columns", wrong, "-o", "none") == 2
        assert message in capsys.readouterr().err
    assert run("report", "mine.csv") == 2
    assert "--columns" in capsys.readouterr().err


def test_import_takes_several_paths_and_refuses_an_empty_one(here, capsys):
    samples = [ROOT / "logs" / "samples" / f"openevolve-{k}" for k in (1, 2)]
    assert run("import", "auto", *samples, "-o", "both") == 0
    made = {path.name for path in (here / "both").glob("*.jsonl")}
    assert made == {"openevolve-1.jsonl", "openevolve-2.jsonl"}
    capsys.readouterr()
    assert run("import", "auto", "", "-o", "none") == 2
    assert "got an empty one" in capsys.readouterr().err
    assert run("import", "auto", samples[0], samples[0], "-o", "none") == 2
    assert "give the one folder that holds them all" in capsys.readouterr().err
    assert not (here / "none").exists()
    assert run("plan", "both", "--budget", "64") == 2
    assert "a plan needs runs of this project's search 'greedy'" in capsys.readouterr().err


# View


def test_view_says_what_it_does_before_it_loads_anything(here):
    (here / "logs").mkdir()
    code = (
        "import sys; from replay.cli.entry import main\n"
        "sys.modules['replay.reports.live'] = None\n"  # where pandas and the like are imported
        "main(['view', 'logs'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=here)
    assert done.stderr.splitlines()[0] == "Opening logs ..."
