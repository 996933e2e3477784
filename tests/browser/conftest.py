"""What tests in a browser need: Chromium, a JupyterLab, and a folder for screenshots."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test here is tried up to three times where Playwright gave up, and never for an assertion.

    Chromium and JupyterLab share a machine with all other tests: on a starved one a page may lose
    its kernel or take longer than any patience, which says nothing of the explorers.
    """
    folder = Path(__file__).parent
    files = {path for path in {item.path for item in items} if folder in path.parents}
    here = [item for item in items if item.path in files]
    if here:
        from playwright.sync_api import Error

        for item in here:
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=[Error]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Chromium ends with the tests of this folder: while it runs an event loop is under way."""
    yield
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        lab.stop()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Chromium; without it the tests are skipped, or fail where CI=true."""
    found = lab.chromium()
    if found is None:
        reason = "there is no Chromium here; `apt-get install chromium` brings it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory: pytest.TempPathFactory, chromium: str):
    """A running JupyterLab: its address, its folder and its log."""
    folder = tmp_path_factory.mktemp("lab")
    with lab.server(folder) as (url, log):
        yield url, folder, log


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where screenshots are kept after the tests."""
    folder = Path(tempfile.gettempdir()) / "explorer-screenshots"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def opened(notebooks, request):
    """Open a notebook (cells, whether dark); afterwards nothing may have complained."""
    url, folder, log = notebooks
    cells, dark = request.param
    name = f"{request.node.name.split('[')[0]}{'-dark' if dark else ''}.ipynb"
    lab.write_notebook(folder / name, cells)
    with lab.jupyterlab(width=900 if dark else 1280) as (page, errors):
        lab.open_notebook(page, url, name, dark=dark)
        lab.shown(page)
        yield page
        page.wait_for_timeout(600)  # for what might still go wrong at rest
        expected = ("favicon", "Cannot send" if "kernel" in name else "favicon")  # one that is gone
        assert not [error for error in errors if not any(each in error for each in expected)]
    assert lab.tracebacks(log) == []
