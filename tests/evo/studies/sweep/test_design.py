"""The design of a sweep: its space, its file, and what is refused before anything starts."""

from pathlib import Path
from typing import Any

import pytest

import evo
from evo.cli.entry import main
from evo.studies.sweep.design import read_design

COMMON: dict[str, Any] = {"task": "mmd", "seeds": [1, 2], "children": 2, "progress": False}


@pytest.mark.parametrize(
    ("space", "others", "says"),
    [
        ({"temperature": [3.0]}, {}, "temperature = 3.0: .*in .0, 2."),
        ({"children": [0]}, {}, "children = 0"),
        ({"model": ["offline", "gpt-nope"]}, {}, "unknown model 'gpt-nope'"),
        ([1], {}, r"space: expected a table of fields and their values, got \[1\]"),
        ({}, {"base": {"nonsense": 1}}, "unknown field 'nonsense'"),
        ({}, {"seeds": [1, 1]}, "all different"),
        ({}, {"task": None}, "task: expected"),
        ({}, {"strategy": "best"}, "unknown strategy"),
        ({"policy": ["ucb2"]}, {}, "policy = 'ucb2': expected a policy out of"),
        ({"policy": ["mine.py:Mine"]}, {}, "got 'mine.py:Mine'; give a policy of your own itself"),
        ({"policy": ["ucb1"]}, {"generations": 2}, "an allocation has rounds"),
        ({"rounds": [4]}, {}, "rounds: an allocation's, which needs a policy"),
        ({}, {"budget": {"money": 1}}, "expected a unit out of calls"),
        ({}, {"budget": {"calls": 0}}, "positive"),
        ({"model": ["offline", "priceless"]}, {"budget": {"dollars": 1.0}}, "no prices"),
    ],
)
def test_mistakes_are_found_before_anything_starts(
    space, others, says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "models.toml"
    registry.write_text('[priceless]\nbase_url = "http://127.0.0.1:9/v1"\nid = "x"\n')
    monkeypatch.setenv("EVO_MODELS", str(registry))
    with pytest.raises(ValueError, match=says):
        evo.start_sweep(space, log_dir=tmp_path / "s", **{**COMMON, **others})
    assert not (tmp_path / "s").exists()


def test_a_file_with_a_space_that_is_none_is_a_mistake(tmp_path: Path, capsys) -> None:
    file = tmp_path / "bad.toml"
    deep = ["[" * 5000, "9" * 10_000]
    for text in ("[1]", "3", '"a"\ntask = [', *deep):
        file.write_text(f"space = {text}\n")
        assert main(["sweep", str(file), "-q"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "bad.toml: no sweep: " in line


def test_what_is_given_beside_a_file_replaces_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(
        'task = "mmd"\nseeds = "1:3"\nstrategy = "random"\ntrials = 3\n'
        "[base]\ngenerations = 1\nchildren = 2\n[space]\nsampling.temperature = [0.2, 0.9]\n"
    )
    handle = evo.start_sweep(
        file, seeds=[7], trials=2, strategy={"name": "guided", "top_k": 1}, seed=5, children=1,
        statement="Spread the points.", log_dir=tmp_path / "s", progress=False,
    )  # fmt: skip
    handle.wait()
    design = read_design(tmp_path / "s")
    assert (design.seeds, design.trials, design.strategy, design.seed) == ((7,), 2, "guided", 5)
    assert (design.options, design.base["children"]) == ({"top_k": 1}, 1)
    (log, *_) = map(evo.read_log, tmp_path.glob("s/runs/*.jsonl"))
    assert (log.header.children, log.header.seed) == (1, 7)
    assert log.header.statement == "Spread the points."
    with pytest.raises(ValueError, match="holds a sweep with base"):
        evo.start_sweep(file, log_dir=tmp_path / "s", progress=False)
