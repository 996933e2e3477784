"""Fixtures shared by the tests of the sandbox."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from toy import Remnants

from evo.sandbox import Evaluator
from evo.sandbox import evaluator as driver


@pytest.fixture(scope="session")
def remnants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remnants]:
    """Mark all workers started by the tests, to find what they leave behind."""
    token = f"marker-{uuid.uuid4().hex}"
    link = tmp_path_factory.mktemp("root") / token
    link.symlink_to(driver._PARENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_PARENT", str(link))
        yield Remnants(token)


@pytest.fixture(scope="session")
def evaluator(remnants: Remnants) -> Iterator[Evaluator]:
    """One worker with all layers that this platform has."""
    with Evaluator(1) as shared:
        yield shared
