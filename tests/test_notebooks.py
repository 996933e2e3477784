"""Every notebook runs from the shipped logs, and is kept as readers should find it."""

import ast
import hashlib
import html
import importlib
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import pytest
from PIL import Image, ImageColor

import evo
import replay
from replay.plots.style import THEMES

nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra [notebook]")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST_CELL, LONGEST_DEF, LONGEST_TEXT = 20, 5, 41
MOST_WORDS, MOST_CELLS = 800, 15
OPENING = json.loads((ROOT / "notebooks" / "pictures" / "opening.json").read_text())
IN_DARK = ROOT / "notebooks" / "pictures" / "dark"
PICTURE = re.compile(r"!\[(.+)\]\((pictures/opening/.+\.png)\)")

every = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


@every
def test_what_is_kept_is_pictures_tables_sentences_and_lines_of_these_cells(path: Path) -> None:
    assert path.stat().st_size < 1_500_000
    for cell in code_cells(path):
        assert cell.execution_count is None
        for output in cell.outputs:
            kept = set(output.data) - {"text/plain"}
            assert kept in ({"image/png"}, {"text/markdown"}, {"text/html"}, set())
            page, words = (output.data.get(kind, "") for kind in ("text/html", "text/plain"))
            assert "<script" not in page
            assert "/tmp/" not in page + words
            assert len(words.splitlines()) <= LONGEST_TEXT
            if "image/png" in kept:
                assert output.metadata["image/png"]["alt"] not in ("", "figure")
            shows = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
            assert cell.metadata["shows"] == shows, f"{cell.id}: `notebooks/pictures/make.py` again"


def shows_table(cell: Any) -> bool:
    return any('class="dataframe"' in o.data.get("text/html", "") for o in cell.get("outputs", ()))


def test_tables_are_kept_like_pictures() -> None:
    cells = [cell for path in NOTEBOOKS for cell in code_cells(path)]
    assert sum(map(shows_table, cells)) >= 15


def prints(cell: Any) -> bool:
    """Whether a cell prints, at its top level, what does not name a folder."""
    body = ast.parse(cell.source).body
    calls = [each.value for each in body if isinstance(each, ast.Expr)]
    names = [each.func for each in calls if isinstance(each, ast.Call)]
    own = any(isinstance(name, ast.Name) and name.id == "print" for name in names)
    return own and "FOLDER" not in cell.source


@every
def test_what_is_printed_is_kept(path: Path) -> None:
    for cell in code_cells(path):
        assert cell.outputs or not prints(cell), cell.source


def test_of_a_run_that_is_followed_the_last_frame_is_kept() -> None:
    followed = [
        output.data["text/plain"]
        for path in NOTEBOOKS
        for cell in code_cells(path)
        if "replay.follow(" in cell.source
        for output in cell.outputs
    ]
    assert followed
    assert all(words.startswith("Completed after ") for words in followed)


@every
def test_prose_about_a_table_stands_beside_it(path: Path) -> None:
    cells = read(path).cells
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown" and re.search(
            r"\b[Tt]he table (counts|states)", cell.source
        ):
            assert any(map(shows_table, cells[max(0, number - 1) : number + 2])), cell.source


@every
def test_it_is_prose_first(path: Path) -> None:
    cells = read(path).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    text = sum(len(cell.source) for cell in cells if cell.cell_type == "markdown")
    assert text > sum(len(cell.source) for cell in cells if cell.cell_type == "code") / 2
    assert "not an LLM" in cells[0].source


@every
def test_it_is_short(path: Path) -> None:
    text = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    assert sum(len(PICTURE.sub("", each).split()) for each in text) <= MOST_WORDS
    assert len(code_cells(path)) <= MOST_CELLS


@every
def test_it_opens_with_a_picture_that_it_draws(path: Path) -> None:
    _title, picture, *_ = read(path).cells[0].source.split("\n\n")
    words, place = PICTURE.fullmatch(picture).groups()
    [cell] = [each for each in code_cells(path) if each.id == OPENING[path.stem]]
    [shown, *_] = [each for each in cell.outputs if "image/png" in each.data]
    assert shown.data["text/plain"].startswith(words)
    again = "`notebooks/pictures/make.py` again"
    assert (path.parent / place).read_bytes() == b64decode(shown.data["image/png"]), again


def stored_pictures(path: Path) -> list[bytes]:
    kept = [out.data.get("image/png") for cell in code_cells(path) for out in cell.outputs]
    return [b64decode(png) for png in kept if png]


def twin_of(png: bytes) -> Path:
    """A picture's twin for dark pages is named after its bytes, so that it fits no other."""
    return IN_DARK / f"{hashlib.sha256(png).hexdigest()[:12]}.png"


@every
def test_each_picture_has_a_twin_of_its_size_for_dark_pages(path: Path) -> None:
    for png in stored_pictures(path):
        twin = twin_of(png)
        assert twin.exists(), "`notebooks/pictures/make.py` again"
        pictures = Image.open(io.BytesIO(png)).convert("RGB"), Image.open(twin).convert("RGB")
        assert pictures[0].size == pictures[1].size
        for picture, theme in zip(pictures, ("light", "dark"), strict=True):
            assert picture.getpixel((0, 0)) == ImageColor.getrgb(THEMES[theme].ground)


def test_pictures_for_dark_pages_are_few_and_small() -> None:
    wanted = {twin_of(png) for path in NOTEBOOKS for png in stored_pictures(path)}
    assert {*IN_DARK.iterdir()} == wanted, "`notebooks/pictures/make.py` removes the others"
    assert sum(each.stat().st_size for each in wanted) < 2_200_000


def test_pictures_for_dark_pages_are_in_git() -> None:
    """A picture that is made again has another name: `git commit -a` would leave it out."""
    listed = subprocess.run(["git", "ls-files"], cwd=IN_DARK, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    assert {each.name for each in IN_DARK.iterdir()} <= {*listed.stdout.splitlines()}


SAYS_ITSELF = ("02_compute_envelope",)
"""Notebooks whose decision is about units, of which `replay.advise` knows nothing."""


@every
def test_it_ends_in_a_decision(path: Path) -> None:
    last = code_cells(path)[-1]
    assert "replay.advise(" in last.source or path.stem in SAYS_ITSELF
    [*_, said] = last.outputs
    assert re.search(
        "decision|Use |Stay with|is better than|would change that", said.data["text/plain"]
    )


ROOMS = {"evo", "evo.parallel", "evo.policies", "evo.protocols", "evo.rewards", "evo.searches"}
ROOMS |= {
    "replay",
    "replay.claims",
    "replay.explorers",
    "replay.importers",
    "replay.plots",
    "replay.reports",
}


@every
def test_only_the_public_interface_is_imported(path: Path) -> None:
    for node in ast.walk(ast.parse("\n".join(cell.source for cell in code_cells(path)))):
        if isinstance(node, ast.Import):
            modules = {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = {node.module or ""}
            names = dir(importlib.import_module(node.module or ""))
            assert {each.name for each in node.names} <= {*names}
        else:
            continue
        assert {name for name in modules if name.split(".")[0] in {"evo", "replay"}} <= ROOMS


SAID_BY_OTHERS = {"5 %", "0.93", "0.94", "0.03", "0.05"}
"""Levels, and what the paper says."""


@every
def test_prose_states_no_result(path: Path) -> None:
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            prose = re.sub("`[^`]*`", "", cell.source)
            assert set(re.findall(r"\b0\.\d+|\d[\d.]* ?%", prose)) <= SAID_BY_OTHERS


def test_sentences_follow_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import replay

    path = ROOT / "notebooks" / "01_depth_breadth.ipynb"
    said, make = [], replay.say
    for first in (40, 45):
        logs = tmp_path / str(first)
        logs.mkdir()
        for seed, size in itertools.product(range(first, first + 5), (64, 256)):
            [log] = (ROOT / "logs/corpus/offline/min_max_distance").glob(f"*-N{size}-s{seed}.*")
            (logs / log.name).symlink_to(log)
        names: dict[str, Any] = {"LOGS": logs, "RESAMPLES": 20}
        kept: list[str] = []
        with monkeypatch.context() as context:
            context.setattr(
                replay, "say", lambda *a, made=kept, **k: made.append(make(*a, **k)), raising=False
            )
            for cell in code_cells(path):
                if kept or "parameters" in cell.metadata.get("tags", ()):
                    continue
                if "explorers" not in cell.source:
                    exec(cell.source, names)
        said.append(kept[0])
        best = replay.depth_breadth(replay.load(logs), resamples=20).best.iloc[-1]
        assert replay.say("mean is {value}", value=best["value"]) in kept[0]
    assert said[0] != said[1]


STATED = re.compile(
    r"- (?P<task>\w+), (?P<model>[^:]+): (?P<claim>[^:?]+\?) (?P<says>.*, n = .*)\."
)
"""A question of the ledger in a sentence that is kept, with its answer."""
LESS = re.compile(
    r"(?P<a>thompson|ucb1|exp3p|random|single) less (?P<b>random|single):? "
    r"(?P<value>[+-]?\d*\.?\d+(?:e-?\d+)?)"
)
"""The effect of a policy, in a sentence that is kept."""


def sentences(path: Path) -> list[str]:
    """The lines that its cells keep, without Markdown's escapes."""
    kept = [out for cell in code_cells(path) for out in cell.outputs]
    texts = [out.data.get("text/markdown") or out.data.get("text/plain", "") for out in kept]
    return [line.strip() for text in texts for line in html.unescape(text).splitlines()]


def test_a_claim_has_one_verdict_and_one_estimate_in_all_notebooks() -> None:
    said: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for path in NOTEBOOKS:
        for line in filter(None, map(STATED.fullmatch, sentences(path))):
            known = said.setdefault(line.group("task", "model", "claim"), {})
            known.setdefault(line["says"], set()).add(path.stem)
    assert len(said) >= 20
    for claim, known in said.items():
        assert len(known) == 1, (claim, known)
    shared = [places for known in said.values() for places in known.values() if len(places) > 1]
    assert len(shared) >= 3


def test_an_effect_of_a_policy_has_one_estimate() -> None:
    """A protocol states what is computed beside it, a contest what its ledger states."""
    kept = "\n".join(sentences(ROOT / "notebooks" / "09_evidence.ipynb")).lower()
    plain = kept.replace("exp3.p", "exp3p").replace("a single run", "single")
    said: dict[str, list[float]] = {}
    for effect in LESS.finditer(plain):
        a, b = effect.group("a", "b")
        sign = (
            -1 if a == "single" else 1
        )  # single less random is the opposite of random less single
        said.setdefault(f"{b} {a}" if sign < 0 else f"{a} {b}", []).append(
            round(sign * float(effect["value"]), 4)
        )
    assert sum(len(values) > 1 for values in said.values()) >= 5
    for name, values in said.items():
        assert len({*values}) == 1, (name, values)
    lines = sentences(ROOT / "notebooks" / "03_post_hoc_bandits.ipynb")
    claims = "\n".join(lines)
    gains = [m for m in map(re.compile(r"- (\w+): `(\w+)` less `single` (\S+) ").match, lines) if m]
    gains = [gain for gain in gains if f"{gain[2]} over several runs beat one run?" in claims]
    assert len(gains) >= 9
    for task, policy, value in (gain.groups() for gain in gains):
        asked = rf"- {task}, \w+: Does {policy} over several runs beat one run\? "
        assert re.search(rf"{asked}[\w ,]+: \+?{value} \(", claims)


@every
def test_parameters_stand_near_the_top(path: Path) -> None:
    tagged = [
        number
        for number, cell in enumerate(read(path).cells)
        if "parameters" in cell.metadata.get("tags", ())
    ]
    assert len(tagged) == 1
    assert tagged[0] <= 3


@every
def test_cells_and_functions_are_short(path: Path) -> None:
    for cell in code_cells(path):
        assert len(cell.source.splitlines()) <= LONGEST_CELL, cell.source
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < LONGEST_DEF, node.name


@every
def test_cells_keep_their_names(path: Path) -> None:
    cells = read(path).cells
    assert len({cell.id for cell in cells}) == len(cells)
    assert read(path).metadata.kernelspec.name == "python3"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder like the project's: notebooks beside the logs."""
    (tmp_path / "logs").symlink_to(ROOT / "logs", target_is_directory=True)
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    return tmp_path


SMALLER = {
    "00_quickstart": "GENERATIONS, SEEDS = 4, range(40, 45)",
    "01_depth_breadth": "RESAMPLES, LOGS = 100, LOGS / 'min_max_distance'",
    "03_post_hoc_bandits": "ROUNDS, REPLICATES, LOGS = 64, 60, LOGS / 'heilbronn_triangle'",
    "04_live_allocation": "ROUNDS, CHILDREN = 8, 2",
    "05_plan_a_budget": "PILOTS = 2",
    "07_inside_a_run": "GENERATIONS = 6",
    "08_sweeps_and_selection": (
        "SEEDS, BUDGET, DRAWS = range(40, 43), {'calls': 60}, 60\n"
        "SPACE |= {'children': [1, 2], 'generations': [2, 4]}"
    ),
    "10_searches": "COPIES = 3",
    "12_prompts": "GENERATIONS = 3",
}
"""Parameters that say the same sooner; with EVO_TORTURE they stay as they are."""
FEWER = {
    "00_quickstart": (
        '"seeds": range(10), "generations": 6',
        '"seeds": range(4), "generations": 3',
    ),
    "05_plan_a_budget": ("TASKS = sorted(children.groups)", "TASKS = [TASK]"),
    "08_sweeps_and_selection": ('"seeds": range(40, 48)', '"seeds": range(40, 43)'),
    "10_searches": ('"at": 3, "generations": 9', '"at": 3, "generations": 5'),
}
"""The same of what stands in a cell."""
SPARES = f"""
import os, sys
sys.path.append({str(Path(__file__).parent)!r})
from evo.sandbox import evaluator
from spare_sandboxes import SparePool
evaluator._Pool, os.cpu_count = SparePool, lambda: 1
"""
"""As in other tests, runs of a notebook share a sandbox; with EVO_TORTURE each has its own."""


@pytest.fixture(scope="module")
def launch() -> Iterator[object]:
    """Starts a kernel."""
    yield kernels.launch
    kernels.stop()


@pytest.mark.slow
@pytest.mark.flaky(reruns=1, only_rerun=["Kernel died before replying"])  # another took its port
@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(
    path: Path, copied: Path, launch: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient = pytest.importorskip("nbclient", reason="notebooks need the extras [notebook,test]")
    temporary = copied / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))  # where notebooks put their own logs
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    notebook = read(path)
    if "EVO_TORTURE" not in os.environ:
        [cell] = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
        cell.source += "\n" + SMALLER.get(path.stem, "")
        if path.stem in FEWER:
            [cell] = [c for c in notebook.cells if FEWER[path.stem][0] in c.source]
            cell.source = cell.source.replace(*FEWER[path.stem])
        startup = copied / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "spares.py").write_text(SPARES)
        monkeypatch.setenv("IPYTHONDIR", str(copied / "ipython"))
    monkeypatch.setattr("jupyter_client.provisioning.local_provisioner.launch_kernel", launch)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(copied / "notebooks")}}
    )
    client.execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    pictures = [out for out in outputs if "image/png" in out.get("data", {})]
    complaints = [out.text for out in outputs if out.get("name") == "stderr"]
    assert pictures, "no figure was shown"
    assert not [text for text in complaints if "Warning" in text or "Error" in text]


OWN = ("06_your_own_logs", "10_searches")


@pytest.mark.parametrize("name", OWN)
def test_what_is_ones_own_works_without_a_change_of_the_package(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search, a filter, a policy, an importer and a figure: the cells that are tagged so."""
    from replay import importers, plots

    path = ROOT / "notebooks" / f"{name}.ipynb"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(plots.registry, "FIGURES", figures := dict(plots.FIGURES))
    monkeypatch.setattr(plots, "FIGURES", figures)
    monkeypatch.setattr(importers, "IMPORTERS", dict(importers.IMPORTERS))
    monkeypatch.setattr(importers, "_RECOGNISED", dict(importers._RECOGNISED))
    names: dict[str, Any] = {}
    for number, cell in enumerate(code_cells(path)):
        if number < 2 or "own" in cell.metadata.get("tags", ()):
            exec(cell.source, names)
    if name == "10_searches":
        assert evo.rerun(names["elites"].path).same
        parents = {child.parents[0] for child in names["elites"].outcomes}
        assert len(parents) > 2  # greedy would have gone on from the best alone
        assert any(child.evaluation.status == "rejected" for child in names["filtered"].outcomes)
        fitness = np.random.default_rng(0).random((4, 9)).cumsum(axis=1)
        made = replay.simulate(fitness, names["Hopeful"], rounds=8, replicates=3)
        assert set(made.pulls.ravel()) == {0, 1, 2, 3}
    else:
        [run] = importers.read(names["target"])
        assert {each.island for each in run.children} == {0, 1}
        assert importers.detect(names["target"]) == "islands"
        frame = replay.load(*sorted(names["OWN"].glob("*-N16-s4[0-2].*")), progress=False)
        titles = [ax.get_title(loc="left") for ax in plots.overview(frame).axes]
        assert "Calls that gave a working program" in titles


@pytest.mark.parametrize("mine", ["shinkaevolve-1", "gepa-1"])
def test_the_notebook_on_logs_of_ones_own_opens_what_its_parameter_names(
    mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anywidget", reason="explorers need the extra [notebook]")
    monkeypatch.chdir(ROOT / "notebooks")
    parameters, imports, *others = code_cells(ROOT / "notebooks" / "06_your_own_logs.ipynb")
    [opens] = [cell for cell in others if "explorers.pick(" in cell.source]
    names: dict[str, Any] = {}
    exec(parameters.source, names)
    names["MINE"] = names["SAMPLES"] / mine
    for cell in (imports, opens):
        exec(cell.source, names)
    assert list(names["picker"].frame["run"].unique()) == [mine]


def test_the_grid_of_ones_own_logs_leaves_the_real_model_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    parameters, *_ = code_cells(ROOT / "notebooks" / "01_depth_breadth.ipynb")
    own = re.sub(r"^LOGS = .*$", f"LOGS = Path({str(tmp_path)!r})", parameters.source, flags=re.M)
    assert own != parameters.source
    names: dict[str, Any] = {}
    exec(own, names)
    assert list(names["REAL"].rglob("*.jsonl.gz"))


@pytest.mark.parametrize(
    ("stem", "given", "says", "until"),
    [
        ("05_plan_a_budget", "TASK = 'nope'", "TASK: expected one or more of min_max", 1),
        ("05_plan_a_budget", "SEEDS = ()", "SEEDS: expected one or more of 40, 41", 1),
        ("05_plan_a_budget", "SEEDS = (7,)", "SEEDS: expected one or more of 40, 41", 1),
        ("05_plan_a_budget", "PILOT = {3: 8}", "PILOT: expected one or more of 1, 2, 4, 8", 1),
        ("05_plan_a_budget", "SEEDS = tuple(range(40, 50))", "SEEDS: .* to be left out", 5),
        ("05_plan_a_budget", "BUDGET = 100", "BUDGET: expected one of 1, 2, 4, 8", 5),
        ("06_your_own_logs", "SAMPLES = Path('nope')", "SAMPLES: .* got nope", 2),
        ("06_your_own_logs", "OWN = Path('nope')", "nope.*: no log matches", 7),
        ("09_evidence", "PROTOCOL = 'local-tsp-policies'", "PROTOCOL, LOGS: .* got none", 1),
        ("09_evidence", "LOGS = CORPUS / 'offline'", "PROTOCOL, LOGS: .* got none", 1),
    ],
)
def test_a_parameter_that_is_not_in_the_logs_is_said(
    stem: str, given: str, says: str, until: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the cell with this number; others that need not run before it are left out."""
    monkeypatch.chdir(ROOT / "notebooks")
    parameters, *cells = code_cells(ROOT / "notebooks" / f"{stem}.ipynb")
    names: dict[str, Any] = {}
    exec(parameters.source, names)
    if stem.startswith("05"):
        given += "; LOGS = LOGS / 'min_max_distance'"
        cells[1].source = ""  # kernels, of which plans make their own
    exec(given, names)
    for cell in cells[: until - 1]:
        exec(cell.source if "plots." not in cell.source else "", names)
    with pytest.raises(ValueError, match=says):
        exec(cells[until - 1].source, names)


@every
def test_a_parameter_changes_something(path: Path) -> None:
    cells = code_cells(path)
    [parameters] = [c for c in cells if "parameters" in c.metadata.get("tags", ())]
    names = ast.walk(ast.parse(parameters.source))
    stated = {node.id for node in names if isinstance(node, ast.Name) and node.id.isupper()}
    used = "\n".join(re.sub(r"(?m)^([A-Z_]+(, )?)+ = ", "", cell.source) for cell in cells)
    assert {name for name in stated if not re.search(rf"\b{name}\b", used)} == set()


@every
def test_logs_are_loaded_by_patterns_that_an_error_can_name(path: Path) -> None:
    for cell in code_cells(path):
        assert not re.search(r"replay\.load\([^\n]*glob\(", cell.source), cell.source


@pytest.mark.parametrize(("asked", "given"), [(32, 32), (512, 64)])
def test_all_that_is_compared_side_by_side_has_equal_calls(
    asked: int, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the parameter is: the shipped runs of the tools have 64 calls each."""
    monkeypatch.chdir(ROOT / "notebooks")
    parameters, loads, joins, *_ = code_cells(ROOT / "notebooks" / "11_side_by_side.ipynb")
    names: dict[str, Any] = {}
    exec(parameters.source + f"\nCALLS = {asked}", names)
    for cell in (loads, joins):
        exec(cell.source, names)
    spent = names["frame"].groupby(["search", "run"])["n_calls"].sum().groupby("search")
    assert len(spent) == 5
    assert spent.max().between(0.9 * given, given).all()


@every
def test_parameters_hold_from_the_root_too(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    [cell] = [c for c in code_cells(path) if "parameters" in c.metadata.get("tags", ())]
    for folder in (ROOT, ROOT / "notebooks"):
        monkeypatch.chdir(folder)
        names: dict[str, Any] = {}
        exec(cell.source, names)
        for name in {"LOGS", "CORPUS"} & set(names):
            assert list(names[name].rglob("*.jsonl.gz")), f"{name} is empty from {folder}"
