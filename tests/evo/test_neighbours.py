"""Other packages of the same import names."""

import types

import pytest

import evo
import replay
from evo.neighbours import require_ours, warn_of_neighbour


@pytest.mark.parametrize(("ours", "other"), [(evo, "evo-1.38.1"), (replay, "replay_rec-0.22.0")])
def test_another_package_of_the_same_import_name_is_named(ours, other, tmp_path) -> None:
    file = str(tmp_path / ours.__name__ / "__init__.py")
    (tmp_path / "evo_replay-0.1.0.dist-info").mkdir()
    warn_of_neighbour(ours.__name__, file)
    (tmp_path / f"{other}.dist-info").mkdir()
    with pytest.warns(UserWarning, match="an environment of its own") as caught:
        warn_of_neighbour(ours.__name__, file)
    assert [each.filename for each in caught] == [__file__]


def test_a_module_that_is_not_ours_is_an_error() -> None:
    require_ours(evo, "read_log")
    with pytest.raises(ImportError, match=r"finds another package, .*an environment of its own"):
        require_ours(types.ModuleType("evo"), "read_log")
