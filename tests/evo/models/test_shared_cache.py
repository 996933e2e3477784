"""A response cache in a Redis server, which the tests start."""

import contextlib
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from evo_runs import QUIET
from redis_servers import needs_redis, serving

import evo
from evo.cli import main
from evo.logs.servers import hidden
from evo.models import shared_cache
from evo.models.cache import open_cache
from evo.models.shared_cache import SharedCache

pytestmark = needs_redis


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as place:
        yield place


def hits(log: evo.Log) -> int:
    return sum(each.cached for child in log.children for each in child.attempts)


def test_a_second_run_elsewhere_pays_nothing_and_has_the_same_children(address, tmp_path) -> None:
    options = {"generations": 2, "children": 3, "cache": address, **QUIET}
    one = evo.run("mmd", log=tmp_path / "here" / "a.jsonl", **options)
    other = evo.run("mmd", log=tmp_path / "there" / "b.jsonl", **options)
    assert (hits(one), hits(other)) == (0, 6)
    assert [child.program for child in one.children] == [child.program for child in other.children]
    assert one.best.fitness == other.best.fitness


def test_what_is_kept_comes_back_and_nothing_else_does(address) -> None:
    with contextlib.closing(open_cache(address)) as cache:
        assert isinstance(cache, SharedCache)
        assert cache.get(b"k") is None
        cache.put(b"k", b"content")
        assert (cache.get(b"k"), cache.get(b"other")) == (b"content", None)
        cache._client.set(b"evo:reply:k", b"xxxxcontent")
        assert cache.get(b"k") is None
    assert cache.get(b"k") is None


def test_many_threads_use_one_cache(address) -> None:
    with contextlib.closing(SharedCache.open(address)) as cache:

        def work(number: int) -> None:
            for k in range(50):
                cache.put(b"%d" % k, b"x" * k)
                assert cache.get(b"%d" % k) == b"x" * k, number

        threads = [threading.Thread(target=work, args=(each,)) for each in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert all(cache.get(b"%d" % k) == b"x" * k for k in range(50))


def test_a_server_that_goes_away_is_a_warning_and_comes_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shared_cache, "_PAUSE", 0.05)
    with serving(tmp_path) as address:
        cache = SharedCache.open(address)
        cache.put(b"k", b"v")
    with pytest.warns(UserWarning, match="the run goes on without it"):
        assert cache.get(b"k") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(b"k", b"v")
        with serving(tmp_path):
            time.sleep(0.1)
            assert cache.get(b"k") is None
            cache.put(b"k", b"new")
            assert cache.get(b"k") == b"new"
    cache.close()


def test_what_cannot_be_had_is_said_before_the_first_call(tmp_path, capsys) -> None:
    command = ["run", "mmd", "-T", "1", "-N", "1", "--log", str(tmp_path / "a.jsonl"), "-q"]
    assert main([*command, "--cache", f"unix://{tmp_path}/none.sock"]) == 2
    assert "cannot be used as a response cache" in capsys.readouterr().err
    assert main([*command, "--cache", "redis://host:port"]) == 2
    assert "redis://host:6379/0" in capsys.readouterr().err
    assert not (tmp_path / "a.jsonl").exists()


def test_a_password_is_not_told(tmp_path) -> None:
    with serving(tmp_path, "--requirepass", "s3cret") as address:
        with pytest.raises(OSError, match="cannot be used") as caught:
            SharedCache.open(address.replace("unix://", "unix://:wrong-one@"))
        assert "wrong-one" not in str(caught.value)
        with contextlib.closing(SharedCache.open(address.replace("//", "//:s3cret@", 1))) as cache:
            cache.put(b"k", b"v")
            assert cache.get(b"k") == b"v"
            assert "s3cret" not in cache._name
    assert hidden("redis://me:pw@host:6379/0?password=pw") == "redis://host:6379/0"
