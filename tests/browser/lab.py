"""A real JupyterLab in a headless Chromium, for tests and measurements of what is on the screen.

A picture says in its own bytes what it shows (the PNG's `Source` and `Description`), and a view
that the browser draws in its attributes `data-source` and `data-description`, so a test knows which
values are on the screen without comparing images and without waiting for fixed times.
Where only times matter, `window.bare = true` leaves that reading out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import evo
import replay

LEFT_OUT = [
    # pages of the address bar that every window would load: three quarters of what a page costs
    *("WebUIOmniboxAimPopup", "WebUIOmniboxPopup"),
    # what Playwright leaves out, whose list this one replaces
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying"),
    *("AimEnabled", "PreconnectToSearch", "ThirdPartyStoragePartitioning"),
]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(LEFT_OUT)}",
]
PICTURES = "img.widget-image, .replay-picture img, .replay-view"
PATIENCE = 120_000  # milliseconds

WATCH = """
() => {
  if (window.seen) { window.seen.length = 0; return; }
  window.seen = []; window.pressed = 0;
  const blobs = new Map(), make = URL.createObjectURL;  // a picture's address soon ends
  URL.createObjectURL = (blob) => {
    const url = make.call(URL, blob);
    blobs.set(url, blob);
    if (blobs.size > 100) blobs.delete(blobs.keys().next().value);
    return url;
  };
  const text = async (url) => {
    const blob = blobs.get(url);
    if (!blob) return {};
    const bytes = new Uint8Array(await blob.arrayBuffer());
    const view = new DataView(bytes.buffer), notes = {};
    for (let at = 8; at < bytes.length; ) {
      const size = view.getUint32(at);
      const kind = String.fromCharCode(...bytes.slice(at + 4, at + 8));
      if (kind === 'iTXt') {
        const body = bytes.slice(at + 8, at + 8 + size), end = body.indexOf(0);
        notes[String.fromCharCode(...body.slice(0, end))] =
          new TextDecoder().decode(body.slice(end + 5));
      }
      at += 12 + size;
    }
    return notes;
  };
  window.notes = async (each) => each.matches('.replay-view')
    ? {Source: each.dataset.source, Description: each.dataset.description} : text(each.src);
  window.ready = (each) => each.offsetParent && each.complete !== false;
  for (const kind of ['keydown', 'pointerup'])
    document.addEventListener(kind, () => { window.pressed = performance.now(); }, true);
  const painted = async (img) => {
    const url = img.src;
    try { await img.decode(); } catch { return; }
    requestAnimationFrame(async () => {
      const at = performance.now();
      let notes = {};
      if (!window.bare) notes = await text(url);
      window.seen.push({at, wait: at - window.pressed, notes});
    });
  };
  const drawn = (view) => requestAnimationFrame(() => {
    const at = performance.now();
    const {source: Source, description: Description} = view.dataset;
    window.seen.push({at, wait: at - window.pressed, notes: {Source, Description}});
  });
  new MutationObserver((all) => {
    for (const each of all) {
      if (each.type === 'attributes' && each.target.tagName === 'IMG') painted(each.target);
      if (each.attributeName === 'data-serial') drawn(each.target);
      for (const node of each.addedNodes || []) {
        const images = node.tagName === 'IMG' ? [node]
          : node.querySelectorAll ? [...node.querySelectorAll('img')] : [];
        images.forEach(painted);
      }
    }
  }).observe(document.body,
    {subtree: true, childList: true, attributes: true, attributeFilter: ['src', 'data-serial']});
}
"""


def chromium() -> str | None:
    """The system's Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """A notebook of code cells."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "source": source,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    path.write_text(json.dumps(notebook | {"nbformat_minor": 5}))


START = """
import runpy, sys
sys.modules["rfc3987_syntax"] = None  # as in conftest.py: its import takes 10 seconds
import kernels
from jupyter_client.provisioning import local_provisioner
local_provisioner.launch_kernel = kernels.launch
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, Path]]:
    """JupyterLab and Notebook over a folder; gives its address and its log with the kernels'."""
    log = folder / "jupyter.log"
    environment = dict(os.environ)
    root = Path(__file__).resolve().parents[2]
    own = [str(root), str(root / "tests"), str(root / "tests" / "replay")]
    paths = [*own, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    for name in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{name}_DIR"] = str(folder / ".jupyter" / name.lower())
    environment["IPYTHONDIR"] = str(folder / ".ipython")
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(folder / ".jupyter" / "settings")
    environment["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / ".jupyter" / "workspaces")
    settings = folder / ".jupyter" / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    command = [
        *(sys.executable, "-c", START, "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"),
        *("--ServerApp.port=0", "--IdentityProvider.token="),
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={folder}",
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    with log.open("w") as out:
        running = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
    try:
        yield _address(folder / ".jupyter" / "runtime", running, log), log
    finally:
        running.terminate()
        running.wait(timeout=30)


def _address(runtime: Path, running: subprocess.Popen[bytes], log: Path) -> str:
    """Where the server listens, once it answers."""
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline and running.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                url = str(json.loads(file.read_text())["url"])
                urllib.request.urlopen(url + "api", timeout=5).close()
            except (OSError, ValueError):
                continue
            return url
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def tracebacks(log: Path) -> list[str]:
    """Tracebacks in the log of a server and its kernels that pass through the packages."""
    found = log.read_text().split("Traceback (most recent call last):")[1:]
    ours = [f'File "{Path(package.__path__[0])}/' for package in (evo, replay)]
    return [each for each in found if any(file in each for file in ours)]


_running: dict[str, Any] = {}
"""Playwright, Chromium and a page of JupyterLab, which tests share until `stop`."""


def stop() -> None:
    """End the shared Chromium, if one was started."""
    if "chromium" in _running:
        _running["chromium"].close()
        _running["playwright"].stop()
    _running.clear()


def _new_page() -> tuple[Any, list[str]]:
    """A page, with nothing of others, in the shared Chromium, and the errors of its console."""
    if "chromium" not in _running:
        from playwright.sync_api import sync_playwright

        _running["playwright"] = playwright = sync_playwright().start()
        path = chromium()
        _running["chromium"] = playwright.chromium.launch(executable_path=path, args=FLAGS)
    page = _running["chromium"].new_page()
    page.set_default_timeout(PATIENCE)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: (
            errors.append(f"{message.text} {(message.location or {}).get('url')}")
            if message.type == "error"
            else None
        ),
    )
    return page, errors


SHUT = "async () => await window.jupyterapp?.serviceManager.sessions.shutdownAll()"
"""Ends the page's kernels: one that is left would be used by whoever opens the notebook again."""


@contextmanager
def browser(*, width: int = 1280, height: int = 1100):
    """A page of Chromium, and the errors of its console as they come; ends the page's kernels."""
    page, errors = _new_page()
    page.set_viewport_size({"width": width, "height": height})
    try:
        yield page, errors
    finally:
        page.evaluate(SHUT)
        page.close()


@contextmanager
def jupyterlab(*, width: int = 1280, height: int = 1100):
    """As `browser`, the page that other tests have had: JupyterLab is loaded once for all of them.

    It has no notebook open. Where a test did not leave it so, the next one gets a new page.
    """
    page, errors = _running.pop("lab", None) or _new_page()
    page.set_viewport_size({"width": width, "height": height})
    errors.clear()
    clean = False
    try:
        yield page, errors
        page.evaluate(CLOSE)
        page.wait_for_selector(".jp-Notebook", state="detached")
        page.evaluate(SHUT)
        page.wait_for_timeout(500)  # for what is still said of the end
        clean = True
    finally:
        if clean:
            _running["lab"] = page, errors
        else:
            page.close()


CLOSE = """() => {
  for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
    if (widget.context) widget.context.model.dirty = false;  // so that nothing is asked
    widget.close();
  }
}"""
OPEN = "(name) => window.jupyterapp.shell.currentWidget?.context?.path === name"


def open_notebook(
    page, url: str, name: str, *, dark: bool = False, under="lab/tree", run: bool = True
) -> None:
    """Open a notebook, choose the theme and run all its cells."""
    if page.url.startswith(f"{url}lab"):
        execute(page, "docmanager:open", {"path": name, "factory": "Notebook"})
    else:
        page.goto(f"{url}{under}/{name}?reset")
    until(page, f"() => window.jupyterapp && ({OPEN})({json.dumps(name)})")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    wear(page, dark=dark)
    page.evaluate(WATCH)
    until(
        page,
        "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel"
        "?.status === 'idle'",
    )
    until(  # an output that comes before the extension is shown as plain text
        page,
        "() => window.jupyterapp.shell.currentWidget.content.rendermime.mimeTypes"
        ".includes('application/vnd.jupyter.widget-view+json')",
    )
    if run:
        execute(page, "notebook:run-all-cells")


def wear(page, *, dark: bool) -> None:
    """Change the theme, and wait until it is there.

    JupyterLab complains if its theme changes before its splash screen is gone.
    """
    theme = f"JupyterLab {'Dark' if dark else 'Light'}"
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    execute(page, "apputils:change-theme", {"theme": theme})
    page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")


def execute(page, command: str, arguments: dict | None = None) -> None:
    """Run one of JupyterLab's commands."""
    page.evaluate(
        "async ([name, given]) => { await window.jupyterapp.commands.execute(name, given); }",
        [command, arguments or {}],
    )


def until(page, condition: str, arg: object = None):
    """Wait until a function gives what is true. Asked at every frame, it would have each drawn."""
    return page.wait_for_function(condition, arg=arg, polling=50)


def resize(page, width: int, height: int = 900) -> None:
    """Give the window a size, and wait until pictures that watch their width are drawn anew.

    They learn of it after the next frame is laid out, and stick out until the one after it.
    """
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("""async () => {
      for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);
    }""")


def shown(page) -> dict[str, str]:
    """What the visible picture says it shows."""
    from playwright.sync_api import Error

    try:
        until(
            page,
            "(all) => [...document.querySelectorAll(all)].some(window.ready)",
            arg=PICTURES,
        )
    except Error as error:
        outputs = page.locator(".jp-OutputArea").all_inner_texts()
        raise Error(f"no picture, the page shows {outputs!r}") from error
    return page.evaluate(
        "(all) => window.notes([...document.querySelectorAll(all)].find(window.ready))",
        PICTURES,
    )


def wait_for(page, words: str, *, key: str = "Source") -> None:
    """Wait until a picture that is visible now says this."""
    until(
        page,
        """async ([all, key, words]) => {
          for (const image of document.querySelectorAll(all)) {
            if (!window.ready(image)) continue;
            if (((await window.notes(image))[key] || '').includes(words)) return true;
          }
          return false;
        }""",
        arg=[PICTURES, key, words],
    )


def rest(page) -> None:
    """Wait until the visible pictures are drawn in full and nothing has replaced them for a while.

    Before that a page may still learn its width, and the kernel redraws what was drawn coarsely.
    """
    page.evaluate("() => { window.stood = null; }")
    until(
        page,
        """() => {
          const boxes = [...document.querySelectorAll('.replay-view')];
          const serials = boxes.filter(e => e.offsetParent).map(e => e.dataset.serial || '');
          const now = serials.join();
          if (window.stood?.now !== now) window.stood = {now, since: performance.now()};
          return serials.every(Boolean) && performance.now() - window.stood.since > 500;
        }""",
    )


def handle(page, label: str):
    """The slider with a label, or its handle."""
    drawn = page.locator(f".replay-view input[type=range][aria-label='{label}']")
    if drawn.count():
        return drawn.first
    described = page.get_by_text(label, exact=True)
    return page.locator(".widget-hslider", has=described).first.locator(".noUi-handle")


def press(page, label: str, key: str) -> None:
    """Press a key on the slider with a label, once the page is at rest."""
    rest(page)
    handle(page, label).press(key)


def drag(page, label: str, pixels: float) -> None:
    """Drag the handle of the slider with a label sideways, once the page is at rest."""
    rest(page)
    found = handle(page, label)
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if found.evaluate("each => each.matches('input')"):  # the thumb lies where the value is
        share = found.evaluate("each => each.value / each.max")
        x = box["x"] + 8 + share * (box["width"] - 16)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + pixels, y, steps=8)
    page.mouse.up()


def choose(page, label: str, **option) -> None:
    """Choose from the list with a label, once the page is at rest."""
    rest(page)
    page.get_by_label(label, exact=True).select_option(**option)


def sees(page, words) -> None:
    """The words line says this, a text or a pattern."""
    page.get_by_role("status").filter(has_text=words).first.wait_for()


def expect(locator):
    """Playwright's assertions about a part of the page, which wait as long as everything here."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return expect(locator)


STANDARDS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
STRUCTURE = ("page-has-heading-one", "landmark-one-main", "heading-order")
"""What readers of screens find their way by, on a page of ours as a whole."""


def faults(page, within: str = "html", standards: tuple[str, ...] = STANDARDS) -> list[str]:
    """What axe-core finds wrong with a part of the page."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.evaluate(AXE_SCRIPT)
    found = page.evaluate(
        """async ([part, standards]) => (await axe.run(part, {
          runOnly: [...standards],
        })).violations""",
        [within, standards],
    )
    return [f"{each['id']}: {node['html'][:160]}" for each in found for node in each["nodes"]]


def small(page, least: float = 9.0) -> list[str]:
    """Texts that are shown with fewer pixels, those of drawings as they are scaled."""
    return page.evaluate(
        """(least) => {
          const found = [], all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (all.nextNode()) {
            const each = all.currentNode.parentElement, text = all.currentNode.textContent.trim();
            if (!text || !each.checkVisibility() || each.closest('script, style')) continue;
            const by = each.getScreenCTM?.();
            const scale = by ? Math.hypot(by.a, by.b) : 1;
            const size = scale * parseFloat(getComputedStyle(each).fontSize);
            if (size < least - 0.01) found.push(`${size.toFixed(2)} px: ${text.slice(0, 60)}`);
          }
          return found;
        }""",
        least,
    )


def point(page, text: str) -> tuple[float, float]:
    """Where on the page the first mark lies whose tooltip says so, once the page is at rest."""
    rest(page)
    found = until(
        page,
        """(text) => {
          const all = document.querySelectorAll('.replay-view');
          const box = [...all].find(e => e.offsetParent);
          if (box?.view?.find) return box.view.find(text);
          const cell = box?.view?.shown().plan.cells.find(each => each.text.includes(text));
          if (cell) {
            cell.node.scrollIntoView({block: 'nearest'});
            const {left, top, width, height} = cell.node.getBoundingClientRect();
            return [left + width / 2, top + height / 2];
          }
          return null;
        }""",
        arg=text,
    )
    return tuple(found.json_value())


def click(page, text: str) -> str:
    """Point at a mark, which says something, and click it; gives what the tooltip said."""
    tip = page.locator(".replay-view .tip:visible").first
    deadline = time.monotonic() + PATIENCE / 1000
    while True:  # a picture that is replaced under the mouse says nothing until it moves
        x, y = point(page, text)
        page.mouse.move(x + 1, y)
        page.mouse.move(x, y)
        if tip.is_visible():
            break
        assert time.monotonic() < deadline, f"nothing is said of {text!r}"
    said = tip.inner_text()
    page.mouse.click(x, y)
    return said


def fits(page) -> None:
    """Nothing of what is shown is cropped on the right, no tab is cut, no part scrolls sideways."""
    outside = page.evaluate(
        """(pictures) => {
          const output = document.querySelector('.jp-OutputArea-output');
          const edge = Math.min(...[output, output.closest('.jp-Cell')].filter(Boolean)
            .map(e => e.getBoundingClientRect().right));
          const parts = `${pictures}, .widget-hslider, .widget-tab, .widget-button`;
          return [...document.querySelectorAll(parts)].filter(e => e.offsetParent)
            .filter(e => e.getBoundingClientRect().right > edge + 1).map(e => e.className);
        }""",
        PICTURES,
    )
    assert not outside
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.lm-TabBar-tabLabel, .widget-box')]
            .filter((e) => e.closest('.jp-OutputArea'))
            .filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1)
            .map((e) => `${e.className}: ${e.textContent.slice(0, 60)}`)"""
    )
    assert not cut


def pages(*cells: str, dark: tuple[bool, ...] = (False, True)):
    """A notebook of these cells in a wide light page, a narrow dark one, or in both."""
    import pytest

    return pytest.mark.parametrize("opened", [(cells, each) for each in dark], indirect=True)
