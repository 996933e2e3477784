import fcntl
import re
import time

import msgspec
import pytest
from odd_logs import odd_logs
from samples import make_log_bytes

import evo
import replay
from evo.logs.cost import cost_of_calls
from evo.logs.journal import encode_line
from evo.logs.stopping import stop_file


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def follow():
    made = []

    def make(*args, **settings):
        made.append(replay.follow(*args, every=0.02, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()
        each._thread.join(60)
        assert not each._thread.is_alive()


def test_it_follows_a_log_as_it_grows(tmp_path, follow):
    data, path = make_log_bytes(generations=4, children=3), tmp_path / "a.jsonl"
    view = follow(path)
    assert "does not exist yet" in view.words
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    wait_until(lambda: "after 0 of 4 generations:" in view.words)
    wait_until(lambda: "Interrupted (no process writes the log)" in view.words)
    wait_until(lambda: view.stop_button.disabled)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as who writes it does
        file.write(b"".join(lines[3:5]) + lines[5][:20])
        file.flush()
        wait_until(lambda: view.words.startswith("Under way"))
        wait_until(lambda: "0 of 4 generations and 2 of 3 children of the next" in view.words)
        wait_until(lambda: not view.stop_button.disabled)
        assert "value='2'" in view._bar.value
        assert "2 of 12 children" in view._bar.value
        file.write(lines[5][20:] + b"".join(lines[6:]))
    wait_until(lambda: "Completed after 4 of 4 generations" in view.words)
    wait_until(lambda: view.stop_button.disabled)
    best = evo.read_log(path).best
    assert f"child {best.index} of generation {best.generation}" in view.words
    assert "tokens, $" in view.words


def test_it_stops_the_session_that_writes_a_log(tmp_path, follow):
    path = tmp_path / "a.jsonl"
    view = follow(path)
    view.stop()
    assert "no such log" in view._status.value
    path.write_bytes(make_log_bytes(generations=2)[:-40])
    view.stop_button.click()
    assert stop_file(path).exists()


@pytest.mark.parametrize("done", [1, 2, 3])
def test_time_and_cost_left_go_by_what_a_generation_took(tmp_path, follow, done):
    lines = make_log_bytes(generations=4, children=3).splitlines(keepends=True)
    ends = [k for k, line in enumerate(lines) if b'"kind":"generation"' in line]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines[: ends[done - 1] + 1]))
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        words = follow(path).words
    spent, left = map(float, re.findall(r"\$([\d.]+\d)", words))
    assert left == pytest.approx(spent * (4 - done) / done, abs=1e-4)
    hours, more = map(
        float, re.search(r", ([\d.]+) h; at this pace ([\d.]+) h left", words).groups()
    )
    assert more == pytest.approx(hours * (4 - done) / done, rel=1e-3, abs=0.1)


def test_a_critics_calls_cost_what_its_own_prices_say(tmp_path, follow):
    path = tmp_path / "a.jsonl"
    log = evo.run(
        "mmd", model="offline-2", drafts=2, critic="offline-2", generations=1, children=1,
        log=path, progress=False,
    )  # fmt: skip
    model, dear = (evo.Model(name=str(p), input_price=p, output_price=p) for p in (1.0, 1000.0))
    critic = msgspec.structs.replace(log.header.critic, model=dear)
    header = msgspec.structs.replace(log.header, model=model, critic=critic)
    _, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([encode_line(header), *rest]))
    assert f"${cost_of_calls(log.calls, header).dollars:.4f}" in follow(path).words


def test_a_second_click_shows_the_best_again_and_a_second_key_does_not(tmp_path, follow):
    path = tmp_path / "a.jsonl"
    path.write_bytes(make_log_bytes(generations=3, children=3))
    view = follow(path)
    log = evo.read_log(path)
    best = log.best.generation, log.best.index
    other = next(o for o in log.outcomes if (o.generation, o.index) != best)
    told = {"kind": "at", "generation": other.generation, "index": other.index}
    steps = [("click", True), ("click", False), ("key", True), ("key", True)]
    for move, (how, said) in enumerate(steps, 1):
        view._on_message({**told, "how": how, "move": move})
        assert view._screen.heard == move
        shown = f"Shown: child {other.index} of generation {other.generation}, "
        assert (shown in view.words) == said
        place = [other.generation, other.index] if said else list(best)
        assert view._screen.at == view._screen.drawing["at"] == place
    assert f"Best so far: child {log.best.index}" in view.words


def test_the_browser_gets_a_run_again_only_if_it_has_grown(tmp_path):
    data, path = make_log_bytes(generations=3, children=3), tmp_path / "a.jsonl"
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    view = replay.follow(path, every=3600)
    before = view._screen.run
    view._update(coarse=False)
    assert view._screen.run is before
    with path.open("ab") as file:
        file.write(b"".join(lines[5:]))
    view._update(coarse=False)
    assert len(view._screen.run["places"]) == 1 + len(evo.read_log(path).outcomes)
    view.close()


def test_odd_logs_give_a_sentence(tmp_path, follow):
    for path in odd_logs(tmp_path):
        view = follow(path)
        assert view.words
        assert view.png


def test_a_log_that_goes_away_is_said(tmp_path, follow):
    path = tmp_path / "a.jsonl"
    path.write_bytes(make_log_bytes(generations=2))
    view = follow(path)
    path.unlink()
    wait_until(lambda: "cannot read the log" in view.words or "not exist" in view.words)
    path.write_bytes(make_log_bytes(generations=1))
    wait_until(lambda: "of 1 generation:" in view.words)


@pytest.mark.parametrize("wish", ["pause", "stop"])
def test_what_was_asked_is_said_until_the_run_has_ended(tmp_path, follow, wish):
    data, path = make_log_bytes(generations=2, children=2), tmp_path / "a.jsonl"
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:4]))
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as who writes it does
        view = follow(path)
        wait_until(lambda: view.words.startswith("Under way"))
        buttons = {"pause": view.pause_button, "stop": view.stop_button}
        assert {each.disabled for each in buttons.values()} == {False}
        buttons[wish].click()
        assert f"asked to {wish}, with all runs of its command" in view._status.value
        assert "all runs of its command" in buttons[wish].tooltip
        assert stop_file(path, wish).exists()
        time.sleep(0.2)
        assert f"asked to {wish}" in view._status.value
    wait_until(lambda: view.words.startswith("Interrupted"))
    wait_until(lambda: view._status.value == "")
    assert {each.disabled for each in buttons.values()} == {True}


def test_both_buttons_ask_the_run_of_a_handle(tmp_path, follow, monkeypatch):
    asked = []
    for wish in ("pause", "stop"):
        monkeypatch.setattr(evo.Handle, wish, lambda _, wish=wish: asked.append(wish))
    handle = evo.start("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    view = follow(handle)
    view.pause_button.click()
    view.stop_button.click()
    assert "all runs" not in view._status.value + view.stop_button.tooltip  # it is the only one
    assert asked == ["pause", "stop"]
    handle.wait(60)
