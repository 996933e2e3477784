"""A package that adds a task, a model, a policy and a log format, as an installed one does."""

import contextlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import evo
import replay
from evo.cli.entry import main
from evo.filters import FILTERS
from evo.filters.registry import KIND as FILTER
from evo.gate.engines.registry import find_engine
from evo.models.registry import load_models
from evo.plugins import PluginError, Registry, _points, plugged_in
from evo.policies import POLICIES, find_policy, name_of
from evo.policies.rewards import find_reward
from evo.runs.budget import check_budget
from evo.searches import SEARCHES, find_search
from evo.studies.selection import find_selector
from evo.tasks.beginning import new_task
from replay.plots import FIGURES
from replay.reports import SECTIONS

MODULE = """
from pathlib import Path
import evo
from evo.policies import IndexPolicy
from replay.importers import assemble, born

class Eager(IndexPolicy):
    def index(self):
        return -self.pulls

model = evo.Model(name="theirs", id="offline", is_llm=False, base_url="http://127.0.0.1:9/v1")
task = Path(__file__).with_name("their_task")

def read(path):
    first = born(0, evo.Evaluation(status="ok", fitness=0.5))
    return [assemble(path, "theirs", name="r", initial=first, children=[], lost=[], model=model)]
"""
ENTRIES = """
[evo.tasks]
their_task = theirs:task
[evo.models]
theirs = theirs:model
[evo.policies]
eager = theirs:Eager
[replay.importers]
theirs = theirs:read
"""


def test_what_another_package_adds_is_found_by_name(tmp_path: Path) -> None:
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (tmp_path / "theirs.py").write_text(MODULE)
    folder = tmp_path / "their_task"
    folder.mkdir()
    (folder / "initial_program.py").write_text("def f():\n    return 1\n")
    (folder / "evaluator.py").write_text(
        "def evaluate(path):\n    return {'combined_score': 0.5}\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import evo, replay\n"
        "from evo.models.registry import find_model\n"
        "from evo.policies import find_policy\n"
        "from replay.importers import read\n"
        "print(evo.load_task('their_task').name, find_model('theirs').id,\n"
        "      find_policy('eager').__name__, read(sys.path[0], 'theirs')[0].name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["their_task", "offline", "Eager", "r"], done.stderr


@pytest.mark.parametrize("registry", [POLICIES, SEARCHES, FILTERS, evo.ENGINES, FIGURES, SECTIONS])
def test_a_built_in_entry_is_replaced_only_on_purpose(registry: Registry[Any]) -> None:
    taken, own, other = next(iter(registry)), lambda: None, lambda: None
    with patch.dict(registry):
        with pytest.raises(
            ValueError, match=f"{taken!r} is the name of a built-in {registry.what}"
        ):
            registry[taken] = own
        with pytest.raises(ValueError, match="is the name of a built-in"):
            registry.update({taken: own})
        registry[taken] = registry.built_in[taken]
        registry["of_ones_own"] = own
        registry["of_ones_own"] = other
        assert registry["of_ones_own"] is other
        registry.replace(taken, own)
        assert registry[taken] is own
        registry.replace(taken, registry.built_in[taken])
    assert "of_ones_own" not in registry


@pytest.mark.parametrize("name", ["", " ", 3, None])
def test_a_name_is_a_text_that_is_not_empty(name: Any) -> None:
    own = Registry[Callable[[], None]]("thing", {})
    for register in (own.__setitem__, own.replace):
        with pytest.raises(TypeError, match=f"thing: expected a name, .* got {name!r}$"):
            register(name, lambda: None)
    assert not own


@pytest.mark.parametrize(
    ("registry", "word"),
    [(POLICIES, "all"), (POLICIES, "ucb"), (evo.ENGINES, "evo"), (evo.ENGINES, "ours")],
)
def test_a_word_that_means_something_else_where_a_name_is_asked_for_names_no_entry(
    registry: Registry[Any], word: str
) -> None:
    for register in (registry.__setitem__, registry.replace):
        with pytest.raises(ValueError, match=f"got {word!r}, which is the word for "):
            register(word, lambda: None)
    assert word not in registry


@pytest.mark.parametrize(
    ("find", "wrong", "right"),
    [
        (find_policy, "UCB1", "ucb1"),
        (find_policy, "exp3", "exp3p"),
        (find_policy, "Thomson", "thompson"),
        (find_selector, "bruteforce", "brute_force"),
        (find_reward, "Rank", "rank"),
        (lambda unit: check_budget({unit: 1}), "call", "calls"),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(find, wrong, right) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{right}'"):
        find(wrong)


def test_a_verb_says_what_it_returns() -> None:
    expected = {
        "run": "Log", "run_many": "Logs", "resume_many": "Logs", "fork": "Logs",
        "allocate_live": "Allocation", "sweep": "Sweep", "select_best": "Selection",
        "start_allocation": "Handle", "start_sweep": "Handle", "start_selection": "Handle",
    }  # fmt: skip
    for name, returns in expected.items():
        verb = getattr(evo, name)
        for stated in (inspect.signature(verb).return_annotation, verb.__annotations__["return"]):
            assert getattr(stated, "__name__", stated) == returns


BROKEN = """
[evo.models]
lost = nowhere:model
[evo.tasks]
lost = nowhere:task
[evo.policies]
lost = nowhere:Policy
[evo.filters]
lost = nowhere:Filter
[evo.engines]
lost = nowhere:engine
[evo.searches]
lost = nowhere:Search
greedy = usurper:Search
[replay.importers]
lost = nowhere:read
[replay.figures]
lost = json:nothing
best so far = usurper:draw
[replay.panels]
lost = nowhere:panel
[replay.sections]
lost = nowhere:section
"""


def install(folder: Path, package: str, entries: str) -> None:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every group has an entry that cannot be loaded."""
    install(tmp_path, "careless", BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    _points.cache_clear()
    yield
    _points.cache_clear()


@pytest.mark.usefixtures("broken")
def test_an_entry_that_cannot_be_loaded_is_named_with_its_package_where_it_is_asked_for() -> None:
    asks: list[Callable[[], object]] = [
        lambda: evo.load_task("lost"), lambda: find_policy("lost"), lambda: find_engine("lost"),
        lambda: FILTER.find("lost"), lambda: replay.importers.read(".", "lost"),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(PluginError, match=r"'lost' of .* package careless .*No module named"):
            ask()
    with (
        pytest.warns(RuntimeWarning, match="'greedy' of evo.searches, which the package careless"),
        pytest.raises(PluginError, match="careless"),
    ):
        find_search("lost")


ADDED = {
    "evo.policies": POLICIES, "evo.searches": SEARCHES, "evo.filters": FILTERS,
    "evo.engines": evo.ENGINES, "replay.figures": FIGURES, "replay.sections": SECTIONS,
}  # fmt: skip


def test_registries_find_what_packages_add_and_load_it_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "added_things.py").write_text("from builtins import dict as thing\n")
    entries = "".join(f"[{group}]\nadded_thing = added_things:thing\n" for group in ADDED)
    install(tmp_path, "adding", entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    _points.cache_clear()
    try:
        for group, registry in ADDED.items():
            assert "added_thing" in registry
            assert "added_thing" in registry.names()
            assert set(registry) == set(registry.data)
            assert plugged_in(group, registry).keys() == set(registry.names())
        assert "added_things" not in sys.modules
        for registry in ADDED.values():
            assert registry["added_thing"] is registry.get("added_thing") is dict
            with pytest.raises(KeyError, match="nothing"):
                registry["nothing"]
            with patch.dict(registry):
                registry["added_thing"] = registry["mine"] = list
                assert registry["added_thing"] is list
            assert registry["added_thing"] is dict
            assert "mine" not in registry
    finally:
        _points.cache_clear()


def test_an_entry_of_the_wrong_kind_harms_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {group: each for group, each in ADDED.items() if each.kind}
    entries = "".join(f"[{group}]\nmisplaced = math:pi\n" for group in ["evo.models", *kinds])
    install(tmp_path, "careless", entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    _points.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="'misplaced' of evo.models is left out.* got 3.14"):
            assert "offline" in load_models()
        for group, registry in kinds.items():
            for known in (registry, plugged_in(group, registry)):
                message = f"package careless gives .* expected a {registry.kind}, got 3.14"
                with pytest.raises(PluginError, match=message):
                    known["misplaced"]
    finally:
        _points.cache_clear()


def test_a_name_that_is_taken_is_left_out_and_the_warning_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "alpha", "[evo.searches]\nsame = builtins:dict\n")
    install(tmp_path, "beta", "[evo.searches]\nsame = builtins:list\ngreedy = builtins:list\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    _points.cache_clear()
    try:
        with pytest.warns(RuntimeWarning) as told:
            assert plugged_in("evo.searches", SEARCHES)["same"] is dict
        said = {str(each.message) for each in told}
        owners = {"greedy": "something built in", "same": "what alpha adds"}
        assert said == {
            f"{name!r} of evo.searches, which the package beta adds, is left out: the name is that "
            f"of {owner}; give it another name"
            for name, owner in owners.items()
        }
    finally:
        _points.cache_clear()


@pytest.mark.usefixtures("broken")
@pytest.mark.filterwarnings("ignore:.*careless:RuntimeWarning")
def test_what_is_built_in_works_beside_entries_that_cannot_be_loaded(tmp_path: Path) -> None:
    class Own:
        pass

    assert find_policy("ucb1") is POLICIES["ucb1"]
    assert name_of(Own) == "own"
    assert type(find_search("greedy")) is SEARCHES["greedy"]
    with pytest.warns(RuntimeWarning, match="'lost' of evo.models .* careless"):
        assert "offline" in load_models()
    log = tmp_path / "run.jsonl"
    evo.run("mmd", generations=1, children=1, log=log, search="population", progress=False)
    frame = replay.load(log, progress=False)
    figure = replay.plots.overview(frame)
    assert "Lost: not drawn ('lost' of replay.figures" in " ".join(figure.get_supxlabel().split())
    assert figure.axes[0].get_title(loc="left").startswith("Best so far")
    page = replay.site(log, tmp_path / "site").read_text()
    assert "of replay.sections cannot be loaded: the package careless" in page
    [group] = replay.reports.groups(replay.load_tables(log))
    assert [each.title for each in replay.reports.sections(group)][-1] == "Lost"
    with contextlib.closing(replay.explore(frame)) as tabs:
        tabs.open("lost")
        assert "the package careless" in tabs["lost"]._refusal.value


@pytest.mark.parametrize(("toml", "name"), [("", "mytask"), ('name = "stated"', "stated")])
def test_a_packages_task_has_the_name_of_its_entry_unless_it_states_one(
    toml: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "tsk"
    new_task(folder)
    settings = (folder / "task.toml").read_text()
    stated = "".join(line for line in settings.splitlines(True) if not line.startswith("name"))
    (folder / "task.toml").write_text(f"{toml}\n{stated}")
    (tmp_path / f"tasks_{name}.py").write_text(f"TASK = {str(folder)!r}\n")
    install(tmp_path, "tasky", f"[evo.tasks]\nmytask = tasks_{name}:TASK\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    _points.cache_clear()
    try:
        assert evo.load_task("mytask").name == name
        assert evo.load_task(folder).name == (name if toml else "tsk")
        log = evo.run("mytask", generations=1, children=1, progress=False)
        assert log.path.name.startswith(f"{name}-")
        if not toml:
            assert evo.verify(log.path).task == "its task equals the installed mytask"
        assert main(["tasks"]) == 0
        assert "Installed packages add mytask.\n" in capsys.readouterr().out
    finally:
        _points.cache_clear()


ANSWERING = """
import evo

model = evo.Model("answering", call=lambda messages: "no program")
"""


def test_a_log_of_a_packages_function_goes_on_with_the_model_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "answering_models.py").write_text(ANSWERING)
    install(tmp_path, "answering", "[evo.models]\nanswering = answering_models:model\n")
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"children": 1, "log": path, "progress": False}
    with monkeypatch.context() as installed:
        installed.syspath_prepend(str(tmp_path))
        _points.cache_clear()
        evo.run("mmd", model="answering", generations=1, **how)
        assert len(evo.resume(path, generations=2, progress=False).generations) == 2
        copy = evo.fork(path, at=1, generations=2, log_dir=tmp_path / "forks", progress=False)[0]
        assert len(copy.generations) == 2
    _points.cache_clear()
    words = r"--model NAME\), or give it again, model=evo.Model\('answering', call=...\)"
    with pytest.raises(ValueError, match=words):
        evo.resume(path, generations=3, progress=False)
    own = tmp_path / "models.toml"
    own.write_text('[answering]\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("EVO_MODELS", str(own))
    with pytest.raises(ValueError, match="give it again"):  # an endpoint is not that function
        evo.resume(path, generations=3, progress=False)


@pytest.mark.parametrize(
    ("registry", "wrong", "message"),
    [
        (
            SEARCHES,
            evo.searches.Greedy(),
            "expected a class, got Greedy.*give the class itself, Gr",
        ),
        (FILTERS, 5, "filter 'mine': expected a class, got 5$"),
        (POLICIES, "ucb1", "policy 'mine': expected a class, got 'ucb1'$"),
        (FIGURES, 5, "figure 'mine': expected a function, got 5$"),
        (SECTIONS, None, "section 'mine': expected a function, got None$"),
    ],
)
def test_what_cannot_be_called_is_refused_where_it_is_registered(
    registry: Registry[Any], wrong: object, message: str
) -> None:
    for register in (registry.__setitem__, registry.replace):
        with pytest.raises(TypeError, match=message):
            register("mine", wrong)
    assert "mine" not in registry
