import subprocess
import sys
import textwrap
import time
import warnings

import pytest

import evo
from evo.runs.delivery import deliver_rest

QUIET = {"generations": 2, "children": 2, "progress": False}


def test_a_slow_and_a_failing_listener_change_nothing(tmp_path) -> None:
    taken = []

    def slow(event):
        time.sleep(0.3)
        taken.append(event.kind)

    def failing(event):
        raise RuntimeError("no such project")

    options = {"listeners": [slow, failing], **QUIET}
    with pytest.warns(UserWarning, match="failing: raised RuntimeError.'no such project'."):
        log = evo.run("mmd", log=tmp_path / "a.jsonl", **options)
    plain = evo.run("mmd", log=tmp_path / "b.jsonl", **QUIET)
    assert [c.program for c in log.children] == [c.program for c in plain.children]
    deliver_rest()
    assert len(taken) == 8


def test_what_is_not_delivered_at_exit_is_counted_in_one_warning(tmp_path) -> None:
    code = """
        import time, evo, evo.runs.delivery as delivery
        delivery.PATIENCE = 0.0
        delivery.deliver_rest.__defaults__ = (0.1,)

        def hung(event):
            time.sleep(1000)

        evo.run("mmd", generations=1, children=1, log="a.jsonl", progress=False, listeners=[hung])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "events that no listener took in time: 4 to hung" in ran.stderr


def test_listeners_are_a_list_of_functions(tmp_path) -> None:
    for wrong in (print, [3]):
        with pytest.raises(TypeError, match="listeners: expected a list of functions"):
            evo.run("mmd", log=tmp_path / "a.jsonl", listeners=wrong, **QUIET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evo.run("mmd", log=tmp_path / "b.jsonl", listeners=[], **QUIET)
