"""The response cache: what was answered is not asked again, and a bad file stops nothing."""

import contextlib
import random
import sqlite3
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from endpoints import together
from evo_runs import QUIET, timeless
from hypothesis import example, given
from hypothesis import strategies as st
from killing import finish, seen_by, serve_as_model

import evo
from evo.cli.entry import main
from evo.gate.server import OfflineServer
from evo.logs.cost import cost_of_attempts, cost_of_children
from evo.logs.records import Child, Model, Sampling
from evo.models.answer import Exchange
from evo.models.cache import CachedClient, ResponseCache
from evo.models.client import ModelClient
from evo.models.limits import Slots
from evo.models.wire import OfflineWire

SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=100)
MESSAGES = [{"role": "user", "content": "hello"}]


class Counting(OfflineWire):
    """The offline model, counting its requests; it can fail and be held up."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.failing, self.gate = 0, False, threading.Event()
        self.gate.set()

    def post(self, body: dict[str, object]) -> Exchange:
        self.count += 1
        self.gate.wait(10)
        if self.failing:
            return Exchange(500, {}, b'{"error": {"message": "no"}}')
        return super().post(body)


@pytest.fixture
def wire() -> Counting:
    return Counting()


def connect(wire: Counting, path: Path, **changes: object) -> CachedClient:
    model = Model(**{"name": "m", "id": "offline", "base_url": "http://localhost/v1", **changes})  # type: ignore[arg-type]
    client = ModelClient(model, SAMPLING, slots=Slots(8), retries=0, wire=wire)
    return CachedClient(client, ResponseCache.open(path))


@pytest.fixture
def client(wire: Counting, tmp_path: Path) -> Iterator[CachedClient]:
    made = connect(wire, tmp_path / "cache.sqlite")
    yield made
    made.close()


def test_a_hit_is_the_kept_call_marked_and_free(client: CachedClient, wire: Counting) -> None:
    first, second = (client.call(MESSAGES, seed=7) for _ in range(2))
    assert wire.count == 1
    assert (second.reply, second.finish_reason) == (first.reply, first.finish_reason)
    (attempt,) = second.attempts
    unmarked = msgspec.structs.replace(attempt, cached=False, latency=first.attempts[0].latency)
    assert attempt.cached
    assert unmarked == first.attempts[0]
    for model in (client.model, Model(name="paid", input_price=1.0, output_price=2.0)):
        cost = cost_of_attempts(second.attempts, model, SAMPLING)
        assert (cost.calls, cost.tokens, cost.flops, cost.dollars, cost.seconds) == (1, 0, 0, 0, 0)


def test_everything_of_the_request_is_in_the_key(tmp_path: Path, wire: Counting) -> None:
    path = tmp_path / "cache.sqlite"
    clients = [
        connect(wire, path),
        connect(wire, path, base_url="http://localhost:81/v1"),
        connect(wire, path, extra_body={"temperature": 0.9}),
        connect(wire, path, extra_body={"top_k": 3}),
        connect(wire, path, version="2"),
    ]
    for client in clients:
        client.call(MESSAGES, seed=1)
    clients[0].call(MESSAGES, seed=2)
    clients[0].call([{"role": "user", "content": "hello!"}], seed=1)
    assert wire.count == 7
    for client in clients:
        client.call(MESSAGES, seed=1)
        client.close()
    assert wire.count == 7


def test_equal_calls_at_once_are_one_request_and_failures_are_not_kept(
    client: CachedClient, wire: Counting
) -> None:
    wire.gate.clear()
    threading.Timer(0.2, wire.gate.set).start()
    calls = together(8, lambda _: client.call(MESSAGES, seed=7))
    assert wire.count == 1
    assert sorted(call.attempts[0].cached for call in calls) == [False] + 7 * [True]
    assert len({call.reply for call in calls}) == 1
    wire.failing = True
    assert client.call(MESSAGES, seed=2).reply is None
    wire.failing = False
    assert client.call(MESSAGES, seed=2).reply is not None
    assert wire.count == 3


def test_no_prompt_and_no_key_is_in_the_file(
    tmp_path: Path, wire: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123")
    client = connect(wire, tmp_path / "c.sqlite", key_variable="OPENAI_API_KEY")
    client.call([{"role": "user", "content": "the whole prompt"}], seed=7)
    client.close()
    content = (tmp_path / "c.sqlite").read_bytes()
    assert b"prompt_tokens" in content
    assert b"sk-secret" not in content
    assert b"the whole prompt" not in content


def test_the_size_is_bounded_and_the_used_stay(tmp_path: Path) -> None:
    path, bound = tmp_path / "c.sqlite", 1 << 20
    cache = ResponseCache.open(path, max_bytes=bound)
    keys = [random.Random(i).randbytes(32) for i in range(1000)]
    for key in keys:
        cache.put(key, b"x" * 4000)
        assert cache.get(keys[0]) is not None  # used all the time, so it is never the oldest
    assert cache.get(keys[1]) is None
    assert all(cache.get(key) for key in keys[-100:])
    cache.close()
    assert 0.8 * bound < path.stat().st_size < 1.1 * bound


def test_a_damaged_row_is_a_miss(tmp_path: Path) -> None:
    path, key = tmp_path / "c.sqlite", b"k" * 32
    cache = ResponseCache.open(path)
    for damage in ("content = x'00'", "content = 'text'", "checksum = 5", "checksum = 'text'"):
        cache.put(key, b"told")
        assert cache.get(key) == b"told"
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            file.execute(f"UPDATE replies SET {damage}")
        file.close()
        assert cache.get(key) is None
    cache.close()
    assert list(tmp_path.iterdir()) == [path]


def test_a_repeated_run_makes_no_request_and_a_new_seed_does(tmp_path: Path) -> None:
    def search(name: str, seed: int, generations: int = 2) -> evo.Log:
        return evo.run(
            "mmd", generations=generations, children=4, seed=seed, log=tmp_path / f"{name}.jsonl",
            cache=tmp_path / "cache.sqlite", **QUIET,
        )  # fmt: skip

    def cached(log: evo.Log) -> list[bool]:
        return [attempt.cached for child in log.children for attempt in child.attempts]

    def uncached(child: Child) -> Child:
        attempts = tuple(msgspec.structs.replace(a, cached=False) for a in child.attempts)
        return msgspec.structs.replace(child, attempts=attempts)

    first, again, other = search("first", 3), search("again", 3), search("other", 4)
    assert (cached(first), cached(again), cached(other)) == ([False] * 8, [True] * 8, [False] * 8)
    known = sorted(timeless([uncached(c) for c in again.children]))
    assert known == sorted(timeless(list(first.children)))
    free = cost_of_children(again.children, again.header.model, again.header.sampling)
    assert (free.calls, free.tokens, free.flops, free.dollars) == (8, 0, 0, 0)
    assert cached(search("longer", 3, generations=3)) == [True] * 8 + [False] * 4  # prefix: free


@pytest.mark.slow
def test_two_processes_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests, shared = tmp_path / "requests.jsonl", str(tmp_path / "new" / "cache.sqlite")

    def command(name: str) -> list[str]:
        arguments = ["run", "mmd", "--model", "served", "-T", "2", "-N", "6", "-q"]
        arguments += ["--workers", "1"]
        return [*arguments, "--cache", shared, "--log", str(tmp_path / f"{name}.jsonl")]

    with OfflineServer(request_log=requests) as server:
        serve_as_model(server, tmp_path, monkeypatch)
        finish(command("a"), command("b"))
        made = len(seen_by(requests))
        assert 12 <= made <= 24
        assert main(command("c")) == 0
        assert len(seen_by(requests)) == made


def test_many_may_make_a_cache_at_the_same_time(tmp_path: Path) -> None:
    def use(path: Path, key: bytes) -> bytes | None:
        with contextlib.closing(ResponseCache.open(path)) as cache:
            cache.put(key, b"content of " + key)
            return cache.get(key)

    keys = [bytes([k]) * 32 for k in range(4)]
    contents = [b"content of " + key for key in keys]
    for number in range(30):
        path = tmp_path / f"{number}.sqlite"
        assert together(4, lambda k, path=path: use(path, keys[k])) == contents
        with contextlib.closing(ResponseCache.open(path)) as cache:
            assert [cache.get(key) for key in keys] == contents


@pytest.mark.parametrize(
    "content", [b"print('an evaluator')\n", b'{"crc":"', b"SQLite format 3\0" + b"x" * 99, None]
)
def test_a_file_of_another_kind_is_never_touched(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "evaluator.py"
    if content is None:
        with contextlib.closing(sqlite3.connect(path)) as file:
            file.execute("CREATE TABLE mine (x)")
    path.write_bytes(content or path.read_bytes())
    before = path.read_bytes()
    with pytest.raises(ValueError, match="left as it is"):
        ResponseCache.open(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="cannot be used"):
        ResponseCache.open(tmp_path)


@pytest.fixture(scope="module")
def filled() -> bytes:
    """The bytes of a cache of a hundred replies."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.sqlite"
        cache = ResponseCache.open(path)
        for number in range(100):
            cache.put(bytes([number]) * 32, f"reply {number} ".encode() * 50)
        cache.close()
        return path.read_bytes()


@given(st.integers(0, 2**32), st.sampled_from(["flip", "cut", "zero"]))
@example(508, "flip")  # SQLite's own message is no text
def test_a_damaged_file_gives_true_replies_or_none(filled: bytes, seed: int, damage: str) -> None:
    content, draws = bytearray(filled), random.Random(seed)
    if damage == "flip":
        for _ in range(draws.choice([1, 10, 1000])):
            content[draws.randrange(len(content))] = draws.randrange(256)
    elif damage == "cut":
        del content[draws.randrange(len(content)) :]
    else:
        start = draws.randrange(len(content))
        content[start : start + 4096] = bytes(4096)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        path = Path(folder) / "c.sqlite"
        path.write_bytes(content)
        try:
            cache = ResponseCache.open(path)
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = ""
        if refusal:
            assert "no response cache of evo" in refusal
            assert path.read_bytes() == content
            return
        for number in range(100):
            found = cache.get(bytes([number]) * 32)
            assert found is None or found == f"reply {number} ".encode() * 50
            cache.put(bytes([number]) * 32, b"new")
        cache.close()
    assert len(told) <= 1


DEEP = b'{"attempts":[],"reply":"x","more":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
FOREIGN = {
    "no attempt": b'{"attempts":[],"reply":"x"}',
    "nested": DEEP,
    "no text": b'{"attempts":[{"status":"ok","latency":1}],"reply":"\xff\xfe"}',
    "no reply": b'{"attempts":[{"status":"ok","latency":1}],"reply":null}',
    "a failure": b'{"attempts":[{"status":"error","latency":1}],"reply":"x"}',
    "a number": b"7",
    "nothing": b"",
}


@pytest.mark.parametrize("row", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_row_with_a_sound_checksum_is_a_miss(
    row: bytes, client: CachedClient, wire: Counting
) -> None:
    key = client._client.request_key(MESSAGES, 7)
    client._cache.put(key, row)
    assert client.call(MESSAGES, seed=7).reply is not None
    assert wire.count == 1


def test_what_a_row_holds_is_capped_as_an_answer_is(client: CachedClient, wire: Counting) -> None:
    usage = {f"n{k}": "x" * 1000 for k in range(2000)} | {"prompt_tokens": 3}
    attempt = {"status": "ok", "latency": 1.0, "usage": usage, "finish_reason": "y" * 10**6}
    call = {"attempts": [attempt], "reply": "z" * (40 << 20)}
    client._cache.put(client._client.request_key(MESSAGES, 7), msgspec.json.encode(call))
    kept = client.call(MESSAGES, seed=7)
    assert wire.count == 0
    assert kept.attempts[0].cached
    assert len(msgspec.json.encode(kept)) < 64 << 20
    assert len(msgspec.json.encode(kept.attempts)) < 100_000


def test_no_journal_is_mapped_into_memory(tmp_path: Path, wire: Counting) -> None:
    path = tmp_path / "cache.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as old:  # as an earlier version left it
        old.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE replies (key BLOB PRIMARY KEY, "
            "used REAL NOT NULL, content BLOB NOT NULL, checksum INTEGER NOT NULL);"
        )
    with contextlib.closing(connect(wire, path)) as client:
        client.call(MESSAGES, seed=7)
        assert not list(tmp_path.glob("*-shm"))
        client.call(MESSAGES, seed=7)
    assert wire.count == 1
