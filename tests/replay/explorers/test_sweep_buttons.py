"""The buttons of a sweep, pressed by hand."""

import time

import pytest

import evo
from evo.studies.sweep.events import EventLog
from replay.explorers.sweep_buttons import sweep_controls, sweep_progress


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("by_folder", [False, True])
def test_buttons_pause_go_on_and_stop(by_folder: bool, tmp_path) -> None:
    sweep = evo.start_sweep(
        {"generations": [300]}, task="mmd", seeds=[1], children=2, log_dir=tmp_path / "s",
        progress=False,
    )  # fmt: skip
    controls = sweep_controls(tmp_path / "s" if by_folder else sweep)
    wait_for(lambda: not controls.pause.disabled)
    controls.pause.click()
    assert sweep.wait(60).summary.ended == "paused"
    wait_for(lambda: not controls.resume.disabled)
    assert "paused: 0 of 1 runs" in controls._words.value
    controls.resume.click()
    wait_for(lambda: sweep_progress(tmp_path / "s")[0].ended == "running")
    wait_for(lambda: not controls.stop.disabled)
    controls.stop.click()
    assert controls.sweep.wait(60).summary.ended == "stopped"
    controls.refresh()
    assert sweep_progress(tmp_path / "s")[1][-1] == "stopped"
    assert "generations = 300" in controls._words.value
    started = [each for each in sweep_progress(tmp_path / "s")[1] if each.startswith("run started")]
    assert set(started) <= {"run started: generations = 300, seed 1"}
    for hash_ in EventLog(tmp_path / "s").state.configurations:
        assert hash_ not in controls._words.value
    controls.close()
