import collections
import csv
import gzip
import os
import pickle
import subprocess

import pytest
from foreign_samples import DATA, statuses, trajectory, write_codeevolve

import replay
from replay.importers import LogFormatError, detect, keep, read

REAL = DATA / "codeevolve"
TABLE = DATA / "codeevolve_circle_packing_26.csv.gz"


def test_an_island_is_what_it_found_itself(tmp_path):
    write_codeevolve(tmp_path)
    assert detect(tmp_path) == "codeevolve"
    (run,) = read(tmp_path)
    assert statuses(run) == ["error", "timeout", "ok", "no_program", None]
    assert trajectory(run) == [0.0, 0.0, 0.0, 0.7, 0.7, 0.7]
    assert run.children[3].evaluation.error == "no such block"
    assert run.children[2].evaluation.seconds == 0.5
    assert run.children[2].program == "# c"
    assert [child.attempts[0].usage["completion_tokens"] for child in run.children] == [
        1, 2, 3, 4, 5,
    ]  # fmt: skip
    assert [child.parents for child in run.children] == [(), ((1, 0),), (), (), ()]
    assert run.header.mixed == 3  # whose parent had migrated
    assert "1 programs that migrated" in run.lost
    inside = tmp_path / "0" / "ckpt"
    (inside / "ckpt_10.pkl").write_bytes((inside / "ckpt_5.pkl").read_bytes())
    for older in ("ckpt_9.pkl", "ckpt_5.pkl"):  # only the last one counts
        (inside / older).write_bytes(b"garbage")
    assert statuses(read(tmp_path)[0]) == statuses(run)


def epoch_log(epochs, *, first=0, extra=""):
    """The text log of a session: a child an epoch, fitness 0.1 x epoch, 10 + epoch tokens."""
    head = "[island 3] 2026-01-01 00:{:02}:00,000 | INFO | 9 | {}\n"
    stated = "Program(id={},fitness={:.8f},island_found=3,iteration_found={},returncode=0,"
    stated += "eval_metrics={{'ratio': {}}})"
    lines = [f"Starting from epoch {first} with evolve_config = {{'migration_interval': 2}}"]
    if not first:
        lines.insert(0, f"EVOLVE COMPONENTS\ninit_prog={stated.format('r', 0, 0, 0.0)}")
    for epoch in range(first + 1, epochs + 1):
        tokens = f"Successfully retrieved response, using 5 prompt tokens and {10 + epoch} "
        lines += [f"========= EPOCH {epoch} =========", f"{tokens}completion tokens."]
        made = stated.format(f"p{epoch}-{first}", epoch / 3, epoch, epoch / 3)
        lines.append(f"Child solution -> {made}.")
        lines += [extra] if extra and epoch == first + 2 else []
    return "".join(head.format(k, line) for k, line in enumerate(lines))


def test_a_text_log_alone_and_a_session_that_makes_epochs_again(tmp_path):
    log = tmp_path / "3" / "results.log"
    log.parent.mkdir()
    log.write_text(epoch_log(4))
    assert detect(tmp_path) == "codeevolve"
    (run,) = read(tmp_path)
    assert (run.name, statuses(run)) == ("3", ["ok"] * 4)
    assert trajectory(run) == [0.0, 1 / 3, 2 / 3, 1.0, 4 / 3]  # exact, though printed short
    assert run.children[0].island == 3
    log.write_text(epoch_log(4) + epoch_log(2, first=2))  # stopped before its first epoch
    assert len(read(tmp_path)[0].children) == 2
    log.write_text(epoch_log(4) + epoch_log(3, first=2))
    (again,) = read(tmp_path)
    assert len(again.children) == 3
    assert "2 epochs that a later session made again, with 27 completion tokens" in again.lost


def test_what_is_made_at_epoch_0_is_no_initial_program_and_its_calls_are_named(tmp_path):
    log = tmp_path / "results.log"
    head, entries = epoch_log(2).split("[island 3] 2026-01-01 00:02", 1)
    made = "Program(id=q,fitness=0.90000000,island_found=3,iteration_found=0,returncode=0,"
    made += "eval_metrics={'ratio': 0.9})"
    first = [
        "========= EPOCH 0 =========",
        "Successfully retrieved response, using 5 prompt tokens and 40 completion tokens.",
        f"Child solution -> {made}.",
    ]
    stamp = "[island 3] 2026-01-01 00:01:30,000 | INFO | 9 | "
    log.write_text(
        head
        + "".join(f"{stamp}{line}\n" for line in first)
        + "[island 3] 2026-01-01 00:02"
        + entries
    )
    (run,) = read(log)
    assert trajectory(run) == [0.0, 1 / 3, 2 / 3]
    assert "1 call at epoch 0, with 40 completion tokens" in run.lost
    assert "1 further program of an epoch" in run.lost


def test_from_the_first_migration_on_an_island_is_no_independent_run(tmp_path):
    log = tmp_path / "results.log"
    log.write_text(epoch_log(4, extra="Migration finished."))
    (run,) = read(log)
    assert run.header.mixed == 3
    log.write_text(epoch_log(2, extra="Migration finished."))
    (run,) = read(log)
    assert run.header.mixed is None


class Hostile:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (os.system, "posix.system"),
        (subprocess.Popen, "subprocess.Popen"),
        (eval, "builtins.eval"),
        (exec, "builtins.exec"),
        (__import__, "builtins.__import__"),
        (open, f"{open.__module__}.open"),
        (pickle.loads, "_pickle.loads"),
    ],
)
def test_a_hostile_pickle_is_refused_by_name(tmp_path, function, wanted):
    path = tmp_path / "ckpt_1.pkl"
    path.write_bytes(pickle.dumps({"sol_db": Hostile(function, "raise SystemExit")}))
    with pytest.raises(LogFormatError, match=f"asks for {wanted}"):
        read(path)


def named(module, name):
    """Opcodes that put a global on the stack."""
    parts = (b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, name))
    return b"".join(parts) + b"\x93"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (b"\x80\x04" + named(module, name) + b".", f"refused.*{module}.{name}")
            for module, name in (
                ("codeevolve.database", "Program.__class__"),
                ("codeevolvex", "Program"),
                ("random", "Random.seed"),
                ("builtins", "type"),
                ("numpy", "load"),
            )
        ),
        (b"\x80\x02}r\xff\xff\xff\xff.", "sol_db"),  # makes the C unpickler reserve 64 GB
    ],
)
def test_no_way_round_the_list(tmp_path, content, message):
    path = tmp_path / "ckpt_1.pkl"
    path.write_bytes(content)
    with pytest.raises(LogFormatError, match=message):
        read(path)


def test_getattr_reaches_nothing(tmp_path):
    """The name is allowed, since bound methods pickle by it; what it gives is a stand-in."""
    path = tmp_path / "ckpt_1.pkl"
    base = b"\x80\x04" + named("builtins", "getattr") + named("collections", "OrderedDict")
    reached = base + b"\x8c\x08__base__\x86R"
    path.write_bytes(reached + b".")
    with pytest.raises(LogFormatError, match="expected a dict"):
        read(path)
    path.write_bytes(reached + b"\x8c\x04echo\x85R.")  # call what getattr returned
    with pytest.raises(LogFormatError, match="not a readable pickle"):
        read(path)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real logs are not beside the project")
def test_real_checkpoints_agree_with_the_table_made_from_the_logs(tmp_path):
    runs = read(REAL)
    assert [run.name for run in runs] == ["gemini_insp/0", "gemini_insp/1"]
    with gzip.open(TABLE, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["config"] == "gemini_insp"]
    words = {"valid": "ok", "timeout": "timeout", "exception": "error", "sr_fail": "no_program"}
    for island, run in enumerate(runs):
        table = [row for row in rows if row["island"] == str(island)]
        assert len(run.children) == len(table) == 100
        assert statuses(run) == [words[row["outcome"]] for row in table]
        for child, row in zip(run.children, table, strict=True):
            if child.evaluation.status == "ok":
                assert child.evaluation.fitness == float(row["child_fitness"])
        total = sum(
            attempt.usage["completion_tokens"] for c in run.children for attempt in c.attempts
        )
        assert total == float(table[-1]["completion_tokens_cum"])
        assert run.generations[-1].best_fitness == float(table[-1]["best_local"])
    frame = replay.load(keep(runs, tmp_path))
    assert collections.Counter(frame["run"]) == {"0": 101, "1": 101}


@pytest.mark.skipif(not REAL.is_dir(), reason="the real logs are not beside the project")
def test_the_real_text_logs_say_what_the_checkpoints_say(tmp_path):
    for island in ("0", "1"):
        (whole,) = read(REAL / "gemini_insp" / island)
        (told,) = read(REAL / "gemini_insp" / island / "results.log.gz")
        (kept,) = read(REAL / "gemini_insp" / island / "ckpt")
        assert statuses(told) == statuses(kept) == statuses(whole)
        assert trajectory(told) == pytest.approx(trajectory(kept), abs=1e-15)
        usage = [[a.usage for a in child.attempts] for child in kept.children]
        assert [[a.usage for a in child.attempts] for child in told.children] == usage
        assert told.header.model == whole.header.model
        assert whole.header.sampling.temperature == told.header.sampling.temperature == 0.7
        assert [g.seconds for g in told.generations] == [g.seconds for g in whole.generations]
        assert all(30 < g.seconds < 1500 for g in told.generations)
        assert told.header.mixed is None  # the islands met after the last epoch
        assert "6 epochs that a later session made again" in told.lost
