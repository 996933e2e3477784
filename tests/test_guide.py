"""The code of the README and of the guide runs as it stands there.

A block that begins with `# file: NAME` is written to that file; Python blocks of a page share one
namespace; bash blocks run in a shell. Blocks marked `text` are not run.
"""

import ast
import contextlib
import io
import json
import linecache
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import evo
import evo.cli.entry
import replay
import replay.cli.entry
from evo import plugins
from evo.cli.entry import COMMANDS as EVO
from evo.filters import FILTERS
from evo.logs.cost import UNITS
from evo.logs.literals import EDITS
from evo.policies import POLICIES
from evo.runs import options
from evo.runs.signatures import entries
from evo.searches import SEARCHES
from replay import plots
from replay.cli.entry import COMMANDS as REPLAY
from replay.explorers.panels import PANELS
from replay.importers import IMPORTERS
from replay.logs.frames import ReplayWarning
from replay.reports import SECTIONS

REGISTRIES = (plots.FIGURES, UNITS, POLICIES, FILTERS, SEARCHES, PANELS, SECTIONS, IMPORTERS)

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "notebooks" / "guide"
PAGES = sorted(path.name for path in GUIDE.glob("*.md"))
BLOCK = re.compile(r"^```(python|toml|bash|c)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
FILE = re.compile(r"(?:#|//) file: (\S+)\n")


RUN_ELSEWHERE = {"other_tools.md": "replay import auto $LOGS/samples/openevolve-*"}
"""How a block begins that stands alike on another page, on which it runs."""


WRITING = re.compile(r"(?:\s-o|--log|--log-dir) |\blog=|\blog_dir=|\bevo\.(?:fork|rescore)\(")
"""What blocks have that write files; they are run again, as a reader runs a cell again."""

REPORT = re.compile(r"^replay report .*\n", re.MULTILINE)
"""Writes over its own page and takes most of a block's time."""


def blocks(text: str) -> list[tuple[str, str]]:
    """The blocks of code of a page, each with its language."""
    return BLOCK.findall(text)


def run(language: str, code: str, names: dict[str, object], folder: Path) -> None:
    """Runs one block, or writes the file that it holds."""
    if named := FILE.match(code):
        target = folder / named[1]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(code[named.end() :])
    elif language == "python":
        name = f"<ipython-input-guide-{len(linecache.cache)}>"  # so that functions have a source
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        exec(compile(code, name, "exec"), names)
    elif language == "bash":
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "LOGS": str(ROOT / "logs")}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.thorough
def test_the_code_of_a_page_runs_and_what_writes_files_runs_again(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    names: dict[str, object] = {"__name__": "guide", "LOGS": str(ROOT / "logs")}
    try:
        with contextlib.ExitStack() as kept:
            for registry in REGISTRIES:  # what a page registers is forgotten
                kept.enter_context(patch.dict(registry))
            page_blocks = [
                (language, code)
                for language, code in blocks((GUIDE / page).read_text())
                if not code.startswith(RUN_ELSEWHERE.get(page, "\0"))
            ]
            again = []
            for language, code in page_blocks:
                if WRITING.search(code):
                    again.append((language, REPORT.sub("", code), dict(names)))
                run(language, code, names, tmp_path)
            for language, code, names_then in again:
                run(language, code, names_then, tmp_path)
    finally:
        plt.close("all")


def test_what_runs_elsewhere_stands_there_alike() -> None:
    of = {page: [code for _, code in blocks((GUIDE / page).read_text())] for page in PAGES}
    for page, begin in RUN_ELSEWHERE.items():
        [same] = [code for code in of[page] if code.startswith(begin)]
        assert any(same in of[other] for other in PAGES if other not in RUN_ELSEWHERE)


@pytest.mark.slow
def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    example = text.split("## An example")[1].split("\n## ")[0]
    for language, code in blocks(example):
        run(language, code, {}, tmp_path)
    shown = capsys.readouterr().out
    assert re.search(r"\[[\d.]+, [\d.]+\]", shown)  # an interval
    assert (tmp_path / "runs.pdf").stat().st_size > 1000


DRY = re.compile(r"^```text\n\$ evo (.* --dry-run)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_a_dry_run_prints_what_the_guide_shows(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [each for path in GUIDE.glob("*.md") for each in DRY.findall(path.read_text())]
    assert shown
    for command, lines in shown:
        assert evo.cli.entry.main(command.split()) == 0
        assert capsys.readouterr().out.startswith(lines)


def test_every_option_that_the_guide_and_the_readme_name_exists() -> None:
    known = {"--help", "--help-all", "--api-base", "--primary-model"}  # the last two: OpenEvolve's
    for main, commands in ((evo.cli.entry.main, EVO), (replay.cli.entry.main, REPLAY)):
        for name in (name for group in commands.values() for name in group):
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                assert main([name, "--help-all"]) == 0
            known |= set(OPTION.findall(shown.getvalue()))
    pages = [path for path in GUIDE.glob("*.md") if path.name != "names.md"]  # of other tools, too
    named = {path.name: set(OPTION.findall(path.read_text())) for path in pages}
    named["README.md"] = set(OPTION.findall((ROOT / "README.md").read_text()))
    assert sum(map(len, named.values())) > 20
    assert {page: options - known for page, options in named.items() if options - known} == {}


NAMED = {
    "filter": FILTERS,
    "search": SEARCHES,
    "policy": POLICIES,
    "engine": evo.ENGINES,
    "edits": EDITS,
}
OURS = re.compile(r"(?<![\w./`-])`?((?:evo|replay)(?:\.[A-Za-z_]\w*)+)")


def test_every_name_that_the_guide_and_the_readme_give_to_an_option_exists() -> None:
    theirs = {"names.md"}  # has the values of other tools
    found, unknown = 0, []
    for path in [*GUIDE.glob("*.md"), ROOT / "README.md"]:
        text = path.read_text()
        for option, known in NAMED.items():
            values = re.findall(rf"--{option}[ =]([a-z]\w*)(?![\w.:])", text)
            stated = re.findall(rf"\b{option}s?=(\"\w+\"|[\[(][^\])]*[\])])", text)
            values += re.findall(r"\"(\w+)\"", " ".join(stated))
            found += len(values)
            unknown += [(path.name, option, each) for each in values if each not in known]
    assert found > 15
    assert [each for each in unknown if each[0] not in theirs] == []


def test_every_name_of_the_packages_in_the_guide_and_the_readme_exists() -> None:
    unknown = [
        (path.name, name)
        for path in [*GUIDE.glob("*.md"), ROOT / "README.md"]
        for name in OURS.findall(path.read_text())
        if f"| `{name}` |" not in plugins.__doc__ and not _exists(name)
    ]
    assert unknown == []


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_importer_of_the_guide_reads_scores_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = [
        each for _, each in blocks((GUIDE / "extending.md").read_text()) if "recognise(" in each
    ]
    names: dict[str, object] = {"evo": evo, "replay": replay}
    with patch.dict(IMPORTERS):
        run("python", code[0], names, tmp_path)
        lines = [json.dumps({"score": score}) for score in (0.1, None, "x", 0.3)]
        Path("second.theirs.jsonl").write_text("\n".join(lines))
        frame = replay.importers.load("second.theirs.jsonl")
    assert frame["best_fitness"].tolist() == [0.1, 0.1, 0.1, 0.3]
    assert frame["n_ok"].tolist()[1:] == [0, 0, 1]


def test_the_figure_and_the_table_of_the_guide_take_forks_and_runs_of_other_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (GUIDE / "extending.md").read_text()
    names: dict[str, Any] = {"evo": evo, "replay": replay}
    codes = [each for _, each in blocks(text) if "def failures(" in each or "def tokens(" in each]
    for code in codes:
        exec(code.partition("\n\n\nreplay.plots.FIGURES")[0].partition("\n\n\nSECTIONS")[0], names)
    log = evo.run("mmd", generations=2, children=2, log="run.jsonl", progress=False)
    fork = evo.fork(log.path, at=1, copies=1, generations=2, log_dir="forks", progress=False)
    both = replay.load(log.path, fork[0].path, progress=False)
    for frame in (both, both[both["forked_from"] != ""]):
        [line] = names["failures"](frame).panels[0].marks
        assert list(line.x) == [1, 2]
        assert all(0 <= share <= 1 for share in line.y)
    Path("theirs.csv").write_text("run,generation,fitness\na,1,0.3\na,2,0.4\n")
    with pytest.warns(ReplayWarning, match="which lack"):
        theirs = replay.load_tables("theirs.csv", progress=False)
    [group] = replay.reports.groups(theirs)
    assert names["tokens"](group, None) is None
    [group] = replay.reports.groups(replay.load_tables(log.path, progress=False))
    assert names["tokens"](group, None).title == "Tokens"


def test_messages_that_the_guide_explains_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (.+?) \|", (GUIDE / "troubles.md").read_text(), re.MULTILINE)
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    pieces = [each for text in quoted for each in re.split(r"\.\.\.|'\w*'|[:,(]| \d+", text)]
    said = [each.strip() for each in pieces if len(each.strip()) > 4]
    literals = {
        node.value
        for package in ("evo", "replay")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(said) > 20
    assert [each for each in said if not any(each in text for text in literals)] == []


def test_every_promise_stands_on_its_page_and_has_its_test() -> None:
    text = (GUIDE / "promises.md").read_text()
    rows = re.findall(r"^\| (.+) \| (\S.*?) \| `(\S+)::(\w+)` \|$", text, re.MULTILINE)
    assert len(rows) > 30
    for sentence, where, file, name in rows:
        page = GUIDE / found[1] if (found := re.search(r"\((\w+\.md)\)", where)) else None
        plain = re.sub(r"(?<=\])\([^)]*\)|[\[\]]", "", (page or ROOT / "README.md").read_text())
        assert sentence in " ".join(plain.split()), (sentence, where)
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), (sentence, name)


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 120] == []


def test_the_page_of_options_has_a_heading_for_each() -> None:
    """The page is made when the documentation is, which would end with this as an error."""
    tree = ast.parse((ROOT / "notebooks" / "conf.py").read_text())
    stated = {ast.unparse(n.targets[0]): n.value for n in tree.body if isinstance(n, ast.Assign)}
    listed = ast.literal_eval(stated["OPTIONS"])
    shown = {each.name for _, kind in listed for each in entries(getattr(options, kind))}
    assert {each.name for each in entries(options.RunOptions)} <= shown


def test_every_page_of_the_guide_is_in_the_index() -> None:
    index = (ROOT / "notebooks" / "index.md").read_text()
    listed = set(re.findall(r"^guide/(\S+)$", index, re.MULTILINE))
    assert {f"{name}.md" for name in listed} == set(PAGES)
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks <= set(re.findall(r"^(\d\d_\S+)$", index, re.MULTILINE))


def test_every_cell_of_ours_in_the_comparison_leads_to_a_section() -> None:
    rows = [
        line.split(" | ")
        for line in (GUIDE / "comparison.md").read_text().splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    assert {len(row) for row in rows} == {8}
    for _, ours, *_ in rows[1:]:
        targets = re.findall(r"\]\(([^)]+)\)", ours)
        assert targets, ours
        for page, _, section in (target.partition("#") for target in targets):
            text = (GUIDE / page).read_text()
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
            assert section in anchors or (page.endswith(".ipynb") and not section), (page, section)
