"""The public names: help, dir, completion, and what another package's `evo` or `replay` does."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("missing", [[], ["ipywidgets", "anywidget", "itables", "jupyterlab"]])
def test_help_dir_and_completion_show_every_public_name(missing: list[str]) -> None:
    code = f"""
import pydoc, rlcompleter, sys
for name in {missing!r}:
    sys.modules[name] = None
for place in ("evo", "replay"):  # evo first, as where replay is not imported
    package = __import__(place)
    text = pydoc.plain(pydoc.render_doc(package))
    prefix = place + "."
    completer = rlcompleter.Completer({{place: package}})
    found = []
    while (match := completer.complete(prefix, len(found))) is not None:
        found.append(match.partition("(")[0].removeprefix(prefix))
    for name in package.__all__:
        assert name in dir(package) and name in found and name in text, prefix + name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
