"""What any tool's runs were imported to goes through everything that reads our own logs."""

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from foreign_samples import write_codeevolve, write_openevolve, write_paper, write_shinka
from tiers import thorough_after

import evo
import replay
from evo.cli.entry import main as evo_main
from evo.logs.maintenance import compact
from replay.cli.entry import main
from replay.logs import others

SAMPLES = Path(__file__).parents[3] / "logs" / "samples"


def write_table(folder):
    """Eight runs of sixteen calls of a greedy search, one in five failed."""
    rng = np.random.default_rng(1)
    lines = ["run,order,fitness,status,search"]
    for run in range(8):
        for order, fitness in enumerate(np.maximum.accumulate(rng.random(16))):
            failed = rng.random() < 0.2
            outcome = ",error" if failed else f"{fitness},ok"
            lines.append(f"{run},{order},{outcome},greedy")
    folder.mkdir(parents=True)
    (folder / "calls.csv").write_text("\n".join(lines))


WRITERS = {
    "table": write_table,
    "openevolve": write_openevolve,
    "shinka": write_shinka,
    "codeevolve": write_codeevolve,
    "paper": write_paper,
}


@pytest.fixture(params=[*WRITERS, "gepa"])
def imported(request, tmp_path):
    """A folder of logs that `replay import` made of a tool's own."""
    source = SAMPLES / "gepa-1"
    if request.param in WRITERS:
        source = tmp_path / "source"
        WRITERS[request.param](source)
        if request.param == "table":
            source = source / "calls.csv"
    target = tmp_path / "imported"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["import", "auto", str(source), "-o", str(target)]) == 0
    return target


@pytest.mark.thorough
def test_a_report_and_a_page_are_made(imported, tmp_path, capsys):
    picture = tmp_path / "report.png"
    assert main(["report", str(imported), "-o", str(picture)]) == 0
    assert "Children by status" in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    assert main(["site", str(imported), "-o", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "index.html").exists()


def follow(said):
    """Runs the commands that a text advises, and returns how many there were."""
    commands = [shlex.split(command) for command in re.findall(r"`((?:evo|replay) [^`]*)`", said)]
    for name, *arguments in commands:
        assert {"evo": evo_main, "replay": main}[name](arguments) == 0, (name, arguments)
    return len(commands)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("tool", "form"), [*((tool, "text") for tool in [*WRITERS, "gepa"]), ("openevolve", "markdown")]
)
@pytest.mark.thorough
def test_what_a_report_of_another_tools_folder_advises_can_be_done(
    tmp_path, monkeypatch, capsys, tool, form
):
    source = tmp_path / "a long name of a folder, with spaces, so that lines are wrapped in it"
    if tool == "gepa":
        source = SAMPLES / "gepa-1"
    else:
        WRITERS[tool](source)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    given = source / "calls.csv" if tool == "table" else source
    assert main(["report", str(given), "--format", form]) == 0
    said = capsys.readouterr().out
    assert others.from_here(given) in " ".join(said.split()).replace("\\", "")
    for origin in others._ORIGINS.values():
        assert str(origin.folder) not in said
    done = follow(said)
    assert done or "The tool kept no text of it." in " ".join(said.split())
    assert done == (1 if tool in ("table", "paper") else 3)


@pytest.mark.parametrize("kind", thorough_after(1, ["compact", "whole", "imported"]))
def test_what_a_report_of_logs_advises_can_be_done(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    if kind == "imported":
        write_openevolve(tmp_path / "theirs")
        assert main(["import", "auto", "theirs", "--full", "-o", "logs"]) == 0
    else:
        log = evo.run("mmd", generations=1, children=1, log="logs/a.jsonl", progress=False)
        if kind == "compact":
            compact(log.path, tmp_path / "logs" / "b.jsonl.gz")
            log.path.unlink()
    capsys.readouterr()
    with warnings.catch_warnings(record=True) as noted:
        assert main(["report", "logs"]) == 0
    said = capsys.readouterr().out + "\n".join(str(each.message) for each in noted)
    assert follow(said) == {"compact": 2, "whole": 3, "imported": 2}[kind]
    if kind == "compact":
        assert "This log holds no programs." in " ".join(said.split())
        assert evo_main(["best", "logs"]) == 2
        assert "the log that it was copied from does" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_runs_are_judged_planned_and_explored(imported):
    frame = replay.load(imported, progress=False)
    verdicts = ("greater", "less", "within margin", "undetermined")

    decisions = [
        lambda: replay.judge(frame, "random", "single", arms=2).verdict in verdicts,
        lambda: len(replay.plan(frame, budget=16).options) > 0,
    ]
    for decide in decisions:
        if frame["run"].nunique() >= 5:
            assert decide()
            continue
        try:  # fewer may be refused, in words
            assert decide()
        except ValueError as error:
            words = str(error)
            assert words.count("run")
    explorer = replay.explore(frame)
    assert explorer._repr_mimebundle_()["text/plain"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tool", [*WRITERS, "gepa"])
@pytest.mark.thorough
def test_a_site_a_browser_and_an_export_read_what_a_tool_wrote_as_it_is(tmp_path, tool, capsys):
    source = SAMPLES / "gepa-1"
    if tool != "gepa":
        source = tmp_path / "theirs"
        WRITERS[tool](source)
    page = replay.site(source, tmp_path / "site")
    written = "".join(path.read_text() for path in sorted(page.parent.rglob("*.*s")))
    assert lasting(written + page.read_text())
    browser = replay.browse(source)
    assert lasting(browser.code)
    assert repr(others.from_here(source)) in browser.code
    done = main(["export", "paper", str(source), "-o", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert lasting(said)
    if tool == "table":
        assert done == 2
        assert f"{source}, run calls/0: has no generation 0" in said
        assert "in a row of generation 0" in said
    else:
        assert done == 0
        assert [*(tmp_path / "out").rglob("*.json")]


def lasting(text):
    """Whether a text names no folder that ends with this process."""
    return others.FOR_NOW not in text


@pytest.mark.filterwarnings("ignore")
def test_a_site_and_a_browser_show_the_programs_that_a_tool_kept(tmp_path):
    write_openevolve(tmp_path / "theirs")
    page = replay.site(tmp_path / "theirs", tmp_path / "site")
    assert ">print</i>" in (page.parent / "runs" / "0.js").read_text()
    assert replay.film(tmp_path / "theirs") is not None


@pytest.mark.filterwarnings("ignore")
def test_the_code_of_a_browser_names_the_run_among_several(tmp_path):
    (tmp_path / "t.csv").write_text("run,order,fitness\na,1,.1\nb,1,.5\n")
    browser = replay.browse(tmp_path / "t.csv")
    [*_, last] = others._ORIGINS
    browser.choose(log=last)
    assert f"replay.find_logs({others.from_here(tmp_path / 't.csv')!r})[1]" in browser.code
    [first, second] = replay.find_logs(tmp_path / "t.csv")
    assert (first.stem, second.stem) == ("a", "b")
