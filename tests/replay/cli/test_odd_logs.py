"""Reports and sites of logs with odd paths and numbers: an answer in words, or none needed."""

import itertools
import os
from pathlib import Path

import msgspec
import pytest
from samples import make_log_bytes, sample_lines, write_sample

import evo
import replay
from evo.logs.cost import cost_of_calls
from evo.logs.journal import LogError, encode_line
from evo.logs.records import Outcome
from replay.cli.entry import main


@pytest.mark.parametrize("command", [["report", "-o", "report.png"], ["site", "-o", "site"]])
def test_a_folder_whose_name_is_not_utf8_is_read(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/logs/\xff\xfe"))
    write_sample(folder / "a.jsonl", seed=1)
    write_sample(tmp_path / "logs" / "b.jsonl", seed=2)
    assert len(replay.load(tmp_path / "logs")) == 8
    assert main([command[0], "logs", *command[1:]]) == 0


@pytest.mark.parametrize("fitness", [1.7e308, -1.7e308, 2e100])
def test_a_fitness_beyond_statistics_is_said_in_words(
    fitness: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = sample_lines(seed=1)
    place, child = next(
        (k, line)
        for k, line in enumerate(lines)
        if isinstance(line, Outcome) and line.evaluation.fitness is not None
    )
    evaluation = msgspec.structs.replace(child.evaluation, fitness=fitness)
    lines[place] = msgspec.structs.replace(child, evaluation=evaluation)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(encode_line, lines)))
    (tmp_path / "b.jsonl").write_bytes(make_log_bytes(seed=2))
    with pytest.raises(LogError, match=rf"a.jsonl:{place + 1}: a fitness of .*up to 1e\+100"):
        replay.load(path)
    for command in (["report", str(tmp_path), "-o", str(tmp_path / "r.png")],
                    ["site", str(tmp_path), "-o", str(tmp_path / "site")]):  # fmt: skip
        assert main(command) == 2
        assert "statistics are possible up to 1e+100" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="a fitness of"):
        assert len(replay.load(tmp_path, strict=False)) == 4


def itself(value: float) -> float:
    """A large number is good."""
    return value


def test_a_child_whose_reply_has_a_line_of_its_own_is_named_by_its_own(tmp_path: Path) -> None:
    text = "def large():\n    return 0.5\n"
    task = evo.task("large", initial_program=text, evaluate=itself)
    path, replies = tmp_path / "a.jsonl", itertools.cycle((0.25, 2e100))
    evo.run(
        task, model=lambda messages: f"```python\ndef large():\n    return {next(replies)}\n```",
        children=2, generations=1, log=path, progress=False,
    )  # fmt: skip
    place = next(
        number for number, line in enumerate(path.read_text().splitlines(), start=1)
        if '"fitness":2e100' in line.replace("e+", "e") and '"child"' in line
    )  # fmt: skip
    with pytest.raises(LogError, match=rf"a.jsonl:{place}: a fitness of 2e\+100"):
        replay.load(path)


def test_tokens_that_are_no_whole_numbers_are_one_number_everywhere(tmp_path: Path) -> None:
    lines = sample_lines(seed=1)
    for place, line in enumerate(lines):
        if isinstance(line, Outcome):
            usage = {"prompt_tokens": 10.7, "completion_tokens": 5.5}
            attempts = [msgspec.structs.replace(line.attempts[-1], usage=usage)]
            lines[place] = msgspec.structs.replace(line, attempts=tuple(attempts))
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(encode_line, lines)))
    log = evo.read_log(path)
    for tokens in (
        replay.load(path)["prompt_tokens"].sum() + replay.load(path)["completion_tokens"].sum(),
        replay.load(path)["tokens"].sum(),
        cost_of_calls(log.calls, log.header).tokens,
    ):
        assert tokens == 15 * len(log.outcomes)
