"""What runs of a session share: one client for each model, and whose error ends the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from samples import sample_header

from evo.logs.records import CriticRecord
from evo.models.cache import CachedClient
from evo.models.client import EndpointDown, EndpointMissing, EndpointRefused
from evo.runs.configuration import make_header
from evo.runs.resources import Resources, open_resources
from evo.runs.settings import Settings

QUIET = Settings(workers=1, progress=False)


@pytest.fixture
def resources() -> Iterator[Resources]:
    with open_resources(QUIET) as opened:
        yield opened


def test_runs_of_one_model_and_sampling_share_a_client(resources: Resources) -> None:
    header = make_header("mmd")
    client = resources.caller(header)
    assert resources.caller(make_header("mmd", seed=5, children=3)) is client
    assert resources.caller(make_header("mmd", temperature=0.1)) is not client
    assert resources.caller(make_header("mmd", model="offline-2")) is not client
    critic = CriticRecord(model=header.model, sampling=header.sampling, rubric="good?")
    assert resources.caller(critic) is client


def test_one_caller_may_stand_for_all_models_and_a_cache_before_them(tmp_path: Path) -> None:
    header = make_header("mmd")
    settings = Settings(workers=1, progress=False, cache=tmp_path / "c.sqlite")
    with open_resources(settings) as cached, open_resources(QUIET) as plain:
        assert isinstance(cached.caller(header), CachedClient)
        only = plain.caller(header)
        assert not isinstance(only, CachedClient)
        with open_resources(QUIET, only=only) as given:
            assert given.caller(make_header("mmd", model="offline-2")) is only


@pytest.mark.parametrize(
    ("error", "alone", "isolated"),
    [
        (EndpointDown("down"), True, False),
        (EndpointRefused("refused"), True, False),
        (ValueError("a log"), True, False),
        (EndpointMissing("nobody named one"), True, True),
        (OSError("the disk is full"), True, True),
        (KeyboardInterrupt(), True, True),
    ],
)
def test_an_error_of_one_run_ends_the_session_unless_runs_are_apart(
    error: BaseException, alone: bool, isolated: bool
) -> None:
    for apart, fatal in ((False, alone), (True, isolated)):
        with open_resources(QUIET, isolated=apart) as opened:
            assert opened.is_fatal(error) == fatal


def test_a_line_is_shown_once_in_a_session_and_only_with_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for shown in (True, False):
        with open_resources(Settings(workers=1, progress=shown)) as opened:
            for words in ("one", "two", "one"):
                opened.tell_once(words)
        assert capsys.readouterr().err.split() == (["one", "two"] if shown else [])


def test_an_error_of_a_run_apart_stops_nothing_else(resources: Resources) -> None:
    with open_resources(QUIET, isolated=True) as apart:
        apart.wind_down(Path("a.jsonl"), EndpointDown("down"))
        assert not apart.control.stopping.is_set()
    resources.wind_down(Path("a.jsonl"), EndpointDown("down"))
    assert resources.control.stopping.is_set()
    assert not resources.control.ended.is_set()


def test_without_a_critic_there_is_no_scorer(resources: Resources) -> None:
    header = sample_header()
    assert resources.scorer(header, lambda call: None, {}) is None
    made = make_header("mmd", drafts=2, critic="offline-2")
    assert resources.scorer(made, lambda call: None, {}) is not None
