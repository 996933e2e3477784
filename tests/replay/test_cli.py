import csv
import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from samples import make_log_bytes, write_sample
from test_report import pool

import evo
import replay
from evo.log import read_log
from replay.cli import main

ROOT = Path(__file__).resolve().parents[2]


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


def test_report_prints_tables_and_writes_the_page(here, capsys):
    pool(here / "logs")
    assert run("report", "logs") == 0
    out = capsys.readouterr().out
    assert "min_max_distance, model sample" in out
    assert "95" not in out.splitlines()[0]
    assert out.rstrip().endswith("figures: report.png")
    assert (here / "report.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_report_writes_where_it_is_told_and_the_same_each_time(here, suffix):
    pool(here / "logs", runs=3)
    paths = [here / name / f"page.{suffix}" for name in ("one", "two")]
    for path in paths:
        assert run("report", "logs", "-o", path, "--theme", "dark") == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


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


def test_machine_readable_output_holds_nothing_else(here, capsys):
    pool(here / "logs")
    for option in ("--json", "--csv"):
        assert run("report", "logs", option) == 0
        captured = capsys.readouterr()
        assert "figures: report.png" in captured.err
        if option == "--json":
            json.loads(captured.out)
        else:
            rows = list(csv.DictReader(io.StringIO(captured.out)))
            assert {row["table"] for row in rows} == {"Fitness", "Children by status", "Cost"}


def test_groups_too_small_for_policies_are_said(here, capsys):
    pool(here / "many", runs=4, children=2)
    pool(here / "few", runs=2, children=5)
    options = ("--policies", "ucb1", "--replicates", "50", "--arms", "2")
    assert run("report", "many", "few", *options) == 0
    captured = capsys.readouterr()
    assert "N = 5: policies are compared on at least 3 runs" in captured.err
    assert "Policies after" in captured.out
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


def test_a_real_run_shows_its_construction(here, capsys):
    evo.run("mmd", generations=2, children=3, seed=1, log="logs/a.jsonl", progress=False)
    assert run("report", "logs", "-o", "page.svg") == 0
    captured = capsys.readouterr()
    assert "the offline model is a random rewriter, not an LLM" in captured.out
    assert "model offline (not an LLM)" in captured.out
    assert captured.err == ""
    assert "best of 1 runs: seed 1" in (here / "page.svg").read_text()


# Mistakes

MISTAKES = {
    "no log": ("report", "missing"),
    "empty folder": ("report", "empty"),
    "empty path": ("report", ""),
    "suffix": ("report", "logs", "-o", "page.gif"),
    "format": ("report", "logs", "--json", "--csv"),
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
    "import format": ("import", "nonsense", "logs"),
    "import path": ("import", "openevolve", "missing"),
    "import auto": ("import", "auto", "file"),
    "export format": ("export", "nonsense", "logs", "-o", "out"),
    "export log": ("export", "paper", "missing", "-o", "out"),
    "plan budget": ("plan", "logs", "--budget", "nan"),
    "plan nothing": ("plan", "logs", "--budget", "0"),
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


def test_help_is_quick_and_loads_nothing_heavy():
    heavy = {"matplotlib", "pandas", "scipy", "openai", "ipywidgets"}
    code = (
        "import sys\nfrom replay.cli import main\nsys.stdout = sys.stderr\nmain(['--help'])\n"
        "sys.stdout = sys.__stdout__\n"
        f"print(*sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == []


def test_python_m_replay_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "replay", "--help"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0
    assert "report" in done.stdout


WHOLE = make_log_bytes(generations=2, children=2)
LINES = WHOLE.splitlines(keepends=True)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.one_of(
        st.binary(max_size=100),
        st.integers(0, len(WHOLE)).map(lambda n: WHOLE[:n]),
        st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4)).map(
            lambda edit: WHOLE[: edit[0]] + edit[1] + WHOLE[edit[0] + len(edit[1]) :]
        ),
        st.permutations(LINES).map(b"".join),
        st.sampled_from([b"NaN", b"null", b"-1", b"1e999", b'"x"', b"{}"]).map(
            lambda value: WHOLE.replace(b"0.1", value)
        ),
    )
)
@example(content=b"")
@example(content=b"\x1f\x8b")
@example(content=b"run,generation,fitness\n1,1,\n")
@example(content=LINES[0])
def test_report_of_whatever_bytes_is_a_report_or_one_line(here, capsys, content):
    folder = here / f"case-{time.monotonic_ns()}"
    path = folder / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(content)
    code = run("report", path, "--json", "-o", folder / "page.png")
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    if code:
        assert code == 2
        assert one_line(captured.err), captured.err
        assert str(path) in captured.err
        return
    log = read_log(path)
    best = log.trajectory[-1]
    [cell] = [c for c in json.loads(captured.out)["cells"] if c["quantity"] == "best of runs"]
    assert cell["value"] == (None if best != best else best)  # noqa: PLR0124


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    form=st.sampled_from(
        ["auto", "openevolve", "skydiscover", "shinkaevolve", "codeevolve", "paper"]
    ),
    content=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=100).map(str.encode),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "trajectory",
                            "children",
                            "fitness",
                            "generation",
                            "T",
                            "N",
                            "seed",
                            "task",
                        ]
                    ),
                    inner,
                    max_size=6,
                )
            ),
            max_leaves=15,
        ).map(lambda value: json.dumps(value).encode()),
    ),
    name=st.sampled_from(
        ["run.json", "run.jsonl", "evolution_trace.jsonl", "ckpt_1.pkl", "programs.sqlite"]
    ),
)
def test_import_of_whatever_bytes_is_a_log_or_one_line(here, capsys, form, content, name):
    folder = here / f"case-{time.monotonic_ns()}"
    folder.mkdir()
    (folder / name).write_bytes(content)
    for path in (folder / name, folder):
        code = run("import", form, path, "-o", folder / f"out-{path.name}")
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        if code:
            assert code == 2
            assert one_line(captured.err), captured.err
        else:
            assert len(replay.load(folder / f"out-{path.name}"))


# The other commands


def test_export_and_import_of_the_papers_layout_agree(here, capsys):
    path = write_sample(here / "a.jsonl", generations=4)
    assert run("export", "paper", path, "-o", "paper") == 0
    [written] = (here / "paper").rglob("*.json")
    assert str(written.relative_to(here)) in capsys.readouterr().out
    assert run("export", "paper", path, "-o", "paper") == 2
    assert "exists already" in capsys.readouterr().err
    assert run("import", "paper", "paper", "-o", "back") == 0
    assert "not carried over: files of the task" in capsys.readouterr().out
    [back] = (here / "back").rglob("*.jsonl")
    # The layout has no max_tokens, which is what the default takes a timeout for.
    before, after = (replay.load(log, timeouts="exclude") for log in (path, back))
    assert before["best_fitness"].tolist() == after["best_fitness"].tolist()
    assert before["flops"].tolist() == after["flops"].tolist()
    assert read_log(back).header.compact


def test_plan_prints_a_recommendation_and_draws_it(here, capsys):
    pool(here / "logs", runs=4, generations=6, children=2)
    assert run("plan", "logs", "--budget", "16", "--tau", "0.9") == 0
    out = capsys.readouterr().out
    assert "spend it on" in out
    assert "no forecast of the fitness: several arms" in out
    assert "nan" not in out
    assert out.rstrip().endswith("figure: plan.png")
    assert (here / "plan.png").exists()
