"""The public names: help, dir, completion, and what another package's `evo` or `replay` does."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["evo", "replay"])
@pytest.mark.parametrize("missing", [[], ["ipywidgets", "anywidget", "itables", "jupyterlab"]])
def test_help_dir_and_completion_show_every_public_name(package: str, missing: list[str]) -> None:
    code = f"""
import pydoc, rlcompleter, sys
for name in {missing!r}:
    sys.modules[name] = None
import {package}
text = pydoc.plain(pydoc.render_doc({package}))
completer = rlcompleter.Completer({{"{package}": {package}}})
found = []
while (match := completer.complete("{package}.", len(found))) is not None:
    found.append(match.partition("(")[0].removeprefix("{package}."))
for name in {package}.__all__:
    assert name in dir({package}) and name in found and name in text, name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
