"""What of a task's folder becomes part of the task."""

import os
from pathlib import Path

import pytest
from evo_runs import EVALUATOR, folder_task

from evo.logs.records import Limits
from evo.tasks.folder import TaskError
from evo.tasks.task import load_task


def test_other_layouts(tmp_path: Path) -> None:
    folder = folder_task(tmp_path / "t", evaluator_dot_py="", evaluator__evaluator_dot_py=EVALUATOR)
    assert load_task(folder).record.evaluator_file == "evaluator/evaluator.py"
    (folder / "other.py").write_text("def g():\n    return 2\n")
    (tmp_path / "judge.py").write_text(EVALUATOR)
    task = load_task(folder, program="other.py", evaluator=tmp_path / "judge.py")
    assert task.initial_program == "def g():\n    return 2\n"
    assert task.record.evaluator_file == "judge.py"


def test_statement_and_time_limit_of_a_foreign_config(tmp_path: Path) -> None:
    config = "prompt:\n  system_message: |\n    Make it round.\nevaluator:\n  timeout: 7\n"
    folder = folder_task(tmp_path / "t", config_dot_yaml=config)
    (folder / "config-fast.yaml").write_text("system_message: not this one\n")
    task = load_task(folder)
    assert task.statement == "Make it round."
    assert task.limits.seconds == 7


def test_what_is_too_large_alone_or_together_is_left_out_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_task(tmp_path / "t", a_dot_txt="1" * 60, b_dot_txt="2" * 60)
    before = load_task(folder).record.hash
    (folder / "big.bin").write_bytes(b"\xff" * (2 << 20))
    (folder / "0.bin").write_bytes(b"\xff\xfe")
    monkeypatch.setattr("evo.tasks.folder.TOTAL_CAP", 192)
    with pytest.warns(UserWarning, match=r"b\.txt \(too large: .* a task 192\), big\.bin"):
        record = load_task(folder).record
    assert record.omitted == ("b.txt", "big.bin")
    assert set(record.encoded) == {"0.bin"}
    assert "a.txt" in record.files
    assert record.hash != before


def test_a_byte_order_mark_is_no_part_of_a_program(tmp_path: Path) -> None:
    plain = load_task(folder_task(tmp_path / "toy"))
    marked = {name: "\ufeff" + text for name, text in plain.record.files.items()}
    for name, text in marked.items():
        (tmp_path / "toy" / name).write_text(text, encoding="utf-8")
    again = load_task(tmp_path / "toy")
    assert again.initial_program == plain.initial_program
    assert again.record.hash == plain.record.hash


@pytest.mark.parametrize(
    ("toml", "linked"),
    [
        ("program = '/etc/hostname'", None),
        ("program = '../outside.py'", None),
        ("evaluator = '../outside.py'", None),
        ("instances = '../outside.py'\nentry = ['f']", None),
        ("files = ['../*.py']", None),
        ("files = ['/etc/hostname']", None),
        ("files = ['data/*']", "data/passwd.txt"),
        ("", "initial_program.py"),
        ("", "evaluator.py"),
        ("", "task.toml"),
        ("", "config.yaml"),
        ("", "notes.txt"),
        ("", "strange"),
        ("", "folder"),
    ],
)
def test_nothing_outside_the_folder_is_read(tmp_path: Path, toml: str, linked: str | None) -> None:
    folder = folder_task(tmp_path / "t", task_dot_toml=toml)
    (tmp_path / "outside.py").write_text("SECRET = 1\n")
    (tmp_path / "beyond").mkdir()
    if linked is not None:
        (folder / linked).parent.mkdir(exist_ok=True)
        (folder / linked).unlink(missing_ok=True)
        target = "beyond" if linked == "folder" else "outside.py"
        (folder / linked).symlink_to(tmp_path / target)
    with pytest.raises(TaskError, match=r"outside and is not read|paths within the folder") as says:
        load_task(folder)
    assert "\n" not in str(says.value)


KEY = "sk-" + "a1b2" * 6


LEFT_OUT = {
    "config.yaml": f"llm:\n  api_key: {KEY}\n",
    "settings.json": '{"password": "hunter2hunter2"}',
    "helper.py": f"KEY = '{KEY}'\n",
    "client.py": "api_key = 'not-a-known-shape'\n",
    "run.sh": "export OPENAI_API_KEY=0123456789abcdef0123",
    "notes.txt": "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
    "notebook.ipynb": '{"source": "token=\\"abcdefghijkl\\""}',
    "database.csv": "postgres://me:hunter22@host/db",
    "github.txt": "github_pat_" + "11ABCDEFG0" * 3,
    "keys.json": '{"openai": "abc"}',
    ".env": "OPENAI_API_KEY=abc",
    "prod.env": "TOKEN=abc",
    "id_rsa": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "server.pem": "x",
    "run.jsonl": '{"crc":"67bb09a7","kind":"header"}\n',
    "sweep.json": "{}",
    "evaluator.py.stop": "x",
    "cache.sqlite": "x",
    "output.log": "x",
}


def test_keys_logs_and_strange_files_are_left_out_aloud(tmp_path: Path) -> None:
    code = "token = token_of_the_user_number_1234\n"  # a name is no key
    notes = "max_tokens: 4096, api_key: ${KEY}"
    folder = folder_task(tmp_path / "t", notes_dot_md=notes, own_dot_py=code)
    before = load_task(folder).record
    assert set(before.files) == {"evaluator.py", "initial_program.py", "notes.md", "own.py"}
    for name, text in LEFT_OUT.items():
        (folder / name).write_text(text)
    with pytest.warns(UserWarning, match="not embedded in the task") as said:
        record = load_task(folder).record
    assert record.hash == before.hash  # so a run whose log lies here finds itself again
    for name in LEFT_OUT:
        assert name in str(said[0].message)


def test_a_list_says_what_is_embedded(tmp_path: Path) -> None:
    folder = folder_task(
        tmp_path / "t",
        task_dot_toml="files = ['data/*.csv', 'strange']",
        data__a_dot_csv="1",
        data__b_dot_txt="2",
        helper_dot_py="3",
        strange="4",
    )
    known = {"evaluator.py", "initial_program.py", "task.toml"}
    (folder / "data/c.csv").symlink_to(folder / "data/b.txt")  # within the folder
    files = load_task(folder).record.files
    assert set(files) == known | {"data/a.csv", "data/c.csv", "strange"}
    assert files["data/c.csv"] == "2"
    (folder / "task.toml").write_text("files = ['str*']")
    (folder / "strange.stop").write_text("x")  # of a run whose log lies here
    with pytest.warns(UserWarning, match=r"strange\.stop \(a log, or beside one\)"):
        assert "strange.stop" not in load_task(folder).record.files
    (folder / "client.py").write_text(LEFT_OUT["client.py"])
    (folder / "task.toml").write_text("files = ['client.py']")
    with pytest.warns(UserWarning, match=r"client\.py: seems to hold a key, and becomes part"):
        assert "client.py" in load_task(folder).record.files
    (folder / "task.toml").write_text("files = ['absent.csv']")
    with pytest.raises(TaskError, match=r"nothing matches 'absent\.csv'"):
        load_task(folder)


def test_keys_are_seen_in_other_encodings_and_strange_names_are_left_out(tmp_path: Path) -> None:
    folder = folder_task(tmp_path / "t")
    (folder / "wide.txt").write_text(f"KEY={KEY}", encoding="utf-16")
    (folder / "data.bin").write_bytes(KEY.encode() + b"\xff")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_text("x")
    with pytest.warns(UserWarning, match=r"wide\.txt \(seems.*"):
        record = load_task(folder).record
    assert {*record.files, *record.encoded} == {"evaluator.py", "initial_program.py"}


@pytest.mark.parametrize("timeout", [".inf", ".nan", "1" + "0" * 400, "-3"])
def test_a_foreign_time_limit_that_is_none(tmp_path: Path, timeout: str) -> None:
    folder = folder_task(tmp_path / "t", config_dot_yaml=f"evaluator:\n  timeout: {timeout}\n")
    assert load_task(folder).limits == Limits()
