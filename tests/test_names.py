"""The public names: help, dir, completion, and what another package's `evo` or `replay` does."""

import subprocess
import sys
import types

import pytest

import evo
import replay
from evo.neighbours import require_ours, warn_of_neighbour


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


@pytest.mark.parametrize(("ours", "other"), [(evo, "evo-1.38.1"), (replay, "replay_rec-0.22.0")])
def test_another_package_of_the_same_import_name_is_named(ours, other, tmp_path) -> None:
    file = str(tmp_path / ours.__name__ / "__init__.py")
    (tmp_path / "evo_replay-0.1.0.dist-info").mkdir()
    warn_of_neighbour(ours.__name__, file)
    (tmp_path / f"{other}.dist-info").mkdir()
    with pytest.warns(UserWarning, match="an environment of its own"):
        warn_of_neighbour(ours.__name__, file)


def test_a_module_that_is_not_ours_is_an_error() -> None:
    require_ours(evo, "read_log")
    with pytest.raises(ImportError, match=r"finds another package, .*an environment of its own"):
        require_ours(types.ModuleType("evo"), "read_log")
