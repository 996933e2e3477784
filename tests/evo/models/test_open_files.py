"""How many calls fit into the files that a process may open, with a limit that is made up."""

import warnings
from types import SimpleNamespace

import pytest

from evo.models import open_files
from evo.models.open_files import fitting

UNLIMITED = -1


@pytest.fixture
def limited(monkeypatch):
    """Sets soft and hard limits, of which ten files are open; returns the limits as a list."""
    monkeypatch.setattr(open_files, "_open_now", lambda: 10)

    def limit(soft, hard, *, fixed=False):
        state = [soft, hard]

        def setrlimit(which, new):
            if fixed:
                raise OSError("not permitted")
            state[:] = new

        fake = SimpleNamespace(
            RLIMIT_NOFILE=7, RLIM_INFINITY=UNLIMITED, getrlimit=lambda which: tuple(state),
            setrlimit=setrlimit,
        )  # fmt: skip
        monkeypatch.setattr(open_files, "resource", fake)
        return state

    return limit


@pytest.mark.parametrize(("wanted", "workers"), [(100, 0), (60, 20)])
def test_a_limit_that_suffices_stays_as_it_is(limited, wanted, workers):
    needed = 10 + 24 + 4 * workers + 2 * wanted
    state = limited(needed, 10_000)
    assert fitting(wanted, workers) == wanted
    assert state == [needed, 10_000]


def test_it_is_raised_as_far_as_is_needed_and_no_farther(limited):
    state = limited(233, 10_000)
    assert fitting(100) == 100
    assert state == [234, 10_000]
    state = limited(100, UNLIMITED)
    assert fitting(100) == 100
    assert state == [234, UNLIMITED]


@pytest.mark.parametrize(
    ("soft", "hard", "fixed", "fit"),
    [(100, 134, False, 50), (134, 10_000, True, 50), (135, 10_000, True, 50), (20, 20, False, 1)],
)
def test_where_not_all_fit_as_many_as_do_are_made_and_it_is_said(limited, soft, hard, fixed, fit):
    limited(soft, hard, fixed=fixed)
    with pytest.warns(UserWarning, match=f"{fit} calls in flight in place of 100: .*ulimit -n"):
        assert fitting(100) == fit


def test_without_a_limit_all_fit(limited, monkeypatch):
    limited(UNLIMITED, UNLIMITED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitting(10**6) == 10**6
        monkeypatch.setattr(open_files, "resource", None)
        assert fitting(10**6) == 10**6
