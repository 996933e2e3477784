"""What every explorer does: it saves, stands without a kernel, and frees what it made."""

import base64
import dataclasses
import html
import re
import subprocess
import sys

import pytest
from samples import write_sample
from synthetic_runs import sweep_runs

from replay import explorers


def test_what_is_saved(explorer, tmp_path, monkeypatch):
    for suffix in ("png", "svg", "csv", "html"):
        assert explorer.save(tmp_path / suffix / f"view.{suffix}").stat().st_size > 200
    with pytest.raises(ValueError, match="docx"):
        explorer.save(tmp_path / "view.docx")
    monkeypatch.chdir(tmp_path)
    explorer._save_clicked("csv")
    [made] = tmp_path.glob("allocation-toy-chain-*.csv")
    assert "default" not in made.name
    assert made.read_text().startswith("policy,")


def test_the_picture_is_there_without_a_kernel(explorer):
    bundle = explorer._repr_mimebundle_()
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', bundle["text/html"])[1]
    assert base64.b64decode(picture) == explorer._small()
    assert explorer.words in html.unescape(bundle["text/html"])
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == explorer.words


def test_closing_frees_every_widget(frame, tmp_path):
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    made = explorers.explore(frame)
    made["Allocation"].scrub("tau", [0.5, 0.6])
    made["Budget"].controls["generations"].value = 16
    browser = explorers.browse(write_sample(tmp_path / "a.jsonl"))
    browser.hop("child", -1)
    view, swept = explorers.follow(tmp_path / "a.jsonl"), explorers.explore(sweep_runs())
    swept["Sweep"].controls["where model"].value = ("a",)
    for each in (made, browser, view, swept):
        assert set(_instances) - before
        each.close()
    view._thread.join(30)
    assert not set(_instances) - before


def test_closing_what_is_coming_to_rest_is_quiet(frame):
    made = explorers.explore_allocation(frame)
    made._spec = dataclasses.replace(made._spec, slow=lambda now: made.close())
    made._debounce.soon()
    made._debounce.thread.join(30)  # an exception on it would fail the test
    assert made._debounce.thread is None


def test_without_ipywidgets_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['ipywidgets'] = None; import replay; replay.explore(1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'evo-replay[notebook]'" in done.stderr.splitlines()[-1]
