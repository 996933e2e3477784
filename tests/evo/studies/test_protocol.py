from collections import Counter
from pathlib import Path

import pytest

import evo
from evo.studies.protocol import (
    ProtocolError,
    jobs_of,
    load_protocol,
    logs_of,
    run_protocol,
    state_cost,
)
from evo.studies.protocol_status import status_rows

ROOT = Path(__file__).resolve().parents[3]

SMALL = """
name = "small"
title = "deep against broad"
detects = ["4 runs against 2: nothing"]

[tasks]
min_max_distance = "{hash}"

[options]
model = "{model}"

[[conditions]]
name = "deep"
task = "mmd"
children = 1
generations = 4
seeds = "0:4"

[[conditions]]
name = "broad"
task = "mmd"
children = 4
generations = 1
seeds = "10:12"
options = {{ feedback = true }}

[measures]
final = "best fitness"

[[claims]]
name = "depth"
text = "Deep and broad differ."
measure = "final"
a = "deep"
b = "broad"

[estimate]
prompt_tokens = 300
completion_tokens = 100
calls_per_hour = 100

[result]
verdict = "none yet"
"""


def written(folder: Path, *, model: str = "offline", text: str = SMALL) -> Path:
    file = folder / "small.toml"
    file.write_text(text.format(hash=evo.load_task("mmd").record.hash, model=model))
    return file


SHIPPED = {  # stated content, in the headers of logs that exist
    "local-tsp": "7c63878029a30588c247ad64f008b0985de4804642951db8015391c0b93c883c",
    "local-tsp-feedback": "5fcead557cb0a693be121dd0ae063d1822f995245d33ff1a3a2713643b679802",
    "local-tsp-policies": "2a7f04408605a970496a6b64743641adadc1a899099ee8a76be337e9e29b072d",
    "qwen3-8b-c512": "5b38fc6b89e0923df1ae119146f36c0e6f269b7cc9dd1fbe2ad2410f09f7f0ba",
}


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_the_hash_of_a_shipped_protocol_stands(name: str) -> None:
    assert load_protocol(name).digest == SHIPPED[name]


POLICY_CLAIM = """
[[policy_claims]]
name = "bandit"
text = "UCB1 ends higher than random pulls."
condition = "deep"
policy = "ucb1"
against = "random"
arms = 2
pulls = 4
replicates = 100
"""


def test_a_protocol_may_claim_something_about_policies(tmp_path: Path) -> None:
    plain = load_protocol(written(tmp_path))
    claims = load_protocol(written(tmp_path, text=SMALL + POLICY_CLAIM))
    assert plain.policy_claims == ()
    assert [each.policy for each in claims.policy_claims] == ["ucb1"]
    assert claims.digest != plain.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"deep"', '"narrow"', "a condition out of deep, broad"),
        ('"ucb1"', '"ucb9"', "a policy out of .*ucb1.*, got 'ucb9'"),
        ("arms = 2", "arms = 1", "at least 2 arms"),
        ("pulls = 4", 'pulls = 4\nreward = "glory"', "a reward out of"),
        ("pulls = 4", "pulls = 4\nalpha = 0.7", "alpha between 0 and 0.5, got 0.7"),
        ("pulls = 4", "pulls = 4\nparameters.ucb2.c = 1.0", "got 'ucb2'"),
    ],
)
def test_a_policy_claim_that_cannot_be_judged_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = SMALL + POLICY_CLAIM.replace(old, new)
    with pytest.raises(ProtocolError, match=message):
        load_protocol(written(tmp_path, text=text))


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_protocols_are_of_the_shipped_tasks(name: str) -> None:
    protocol = load_protocol(name)
    folder = ROOT / "logs" / "corpus" / name  # forks leave runs that are there
    assert {job.header.protocol for job in jobs_of(protocol, folder)} == {protocol.digest}
    assert f"{protocol.calls} calls" in state_cost(protocol)
    assert protocol.estimate.basis in state_cost(protocol)
    assert protocol.result == {}
    assert protocol.detects


def test_a_path_is_never_the_name_of_a_shipped_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_protocol("local-tsp").name == "local-tsp"
    with pytest.raises(ProtocolError, match=r"no protocol '\./local-tsp'"):
        load_protocol("./local-tsp")


def test_the_shipped_cell_of_the_paper_is_its_budget() -> None:
    protocol = load_protocol("qwen3-8b-c512")
    assert {c.children * c.generations for c in protocol.conditions} == {512}


def test_any_beginning_of_the_runs_is_balanced() -> None:
    protocol = load_protocol("local-tsp")
    size = {condition.name: len(condition.numbers) for condition in protocol.conditions}
    done: Counter[str] = Counter()
    for job in jobs_of(protocol):
        done[job.header.condition] += 1
        shares = [done[name] / size[name] for name in ("deep", "broad")]
        assert max(shares) - min(shares) <= 1 / 24 + 1e-9
        assert abs(done["single"] / size["single"] - done["deep"] / size["deep"]) < 0.15
    assert done == size


def test_a_change_of_the_file_is_another_protocol(tmp_path: Path) -> None:
    first = load_protocol(written(tmp_path))
    again = load_protocol(written(tmp_path, text=SMALL.replace("none yet", "supported")))
    other = load_protocol(written(tmp_path, text=SMALL.replace("0:4", "0:5")))
    told = load_protocol(written(tmp_path, text=SMALL.replace("4 runs against 2", "4 against 2")))
    assert first.digest == again.digest
    assert len({first.digest, other.digest, told.digest}) == 3
    logs = run_protocol(first, log_dir=tmp_path / "logs", progress=False)
    assert {log.header.protocol for log in logs} == {first.digest}
    made = logs_of(first, tmp_path / "logs")
    assert "24 calls: all were made" in state_cost(first, made)
    assert [row[1] for row in status_rows(first, made)] == ["4 of 4", "2 of 2"]
    assert not any(logs_of(other, tmp_path / "logs").values())
    with pytest.raises(ProtocolError, match="protocol differ"):
        run_protocol(other, log_dir=tmp_path / "logs", progress=False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('seeds = "0:4"', 'seeds = "4:0"', "seeds"),
        ("[measures]", "[measurs]", "measurs"),
        ('b = "broad"', 'b = "wide"', "one of deep, broad"),
        ('measure = "final"', 'measure = "first"', "one of final"),
        ('name = "broad"', 'name = "deep"', "names of their own"),
        ("feedback = true", "feedbck = true", "feedbck"),
        ('task = "mmd"', 'task = "ht"', "hash"),
        ("children = 4", 'children = "four"', "int"),
        ("title =", "title", "small.toml"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        jobs_of(load_protocol(written(tmp_path, text=SMALL.replace(old, new))))


def test_an_unknown_protocol_is_told() -> None:
    with pytest.raises(ProtocolError, match="did you mean 'local-tsp'"):
        load_protocol("local-tps")


FORKS = """
[[conditions]]
name = "{name}"
task = "mmd"
children = 1
generations = 3
seeds = "0:2"
forks = "small/deep"
at = 2
copies = 3
"""


def test_forks_of_another_protocols_runs_are_conditions(tmp_path: Path) -> None:
    """Made where the runs that they leave are whole; paired by copy; only their own calls count."""
    before, _, after = written(tmp_path).read_text().partition("[[conditions]]")
    forks = FORKS.format(name="off") + FORKS.format(name="on") + "options = { feedback = true }\n"
    rest = after[after.index("[measures]") :].replace('"deep"', '"on"').replace('"broad"', '"off"')
    (tmp_path / "second.toml").write_text(before.replace("small", "second") + forks + rest)
    protocol = load_protocol(tmp_path / "second.toml")
    assert protocol.calls == 2 * 2 * 3
    with pytest.raises(ProtocolError, match="not there yet"):
        run_protocol(protocol, log_dir=tmp_path / "second", progress=False)
    parents = run_protocol(tmp_path / "small.toml", log_dir=tmp_path / "small", progress=False)
    logs = run_protocol(protocol, log_dir=tmp_path / "second", progress=False)
    assert len(logs) == 12
    made = logs_of(protocol, tmp_path / "second")
    assert [row[:3] for row in status_rows(protocol, made)] == [
        ("off", "6 of 6", "6 of 6"),
        ("on", "6 of 6", "6 of 6"),
    ]
    by_name = {log.path.stem: log for log in logs}
    for name, log in by_name.items():
        assert log.header.feedback == name.startswith("on")
        assert log.header.fork is not None
        parent = next(each for each in parents if name.split("-")[1] == f"s{each.header.seed}")
        assert log.trajectory[:3].tolist() == parent.trajectory[:3].tolist()
    assert by_name["off-s1-c2"].header.seed == by_name["on-s1-c2"].header.seed
    continued = next(each for each in parents if each.header.seed == 1).children[2]
    assert by_name["off-s1-c0"].children[2].program == continued.program
    assert len(run_protocol(protocol, log_dir=tmp_path / "second", progress=False)) == 12
