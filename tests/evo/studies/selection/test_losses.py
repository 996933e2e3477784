"""By which comparison a configuration was retired: against whom, on how many samples, how sure."""

from typing import Any

import numpy as np
import pytest

import replay
from evo.studies.selection.confidence import log_evidence
from evo.studies.selection.losses import RULES, Losses

REWARDS = np.clip(
    np.random.default_rng(1).normal([[0.2], [0.8], [0.75], [0.3]], 0.1, (4, 60)), 0, 1
)


def raced(selector: str, **how: Any) -> Any:
    return replay.select(REWARDS, selector=selector, **how)


@pytest.mark.parametrize("selector", ["arm_elimination", "epsilon_lucb", "hill_climbing"])
def test_the_p_of_a_loss_is_that_of_bets_on_the_shared_samples_and_decides(selector: str) -> None:
    margin = 0.2 if selector == "epsilon_lucb" else 0.0
    found = raced(selector, parameters={"epsilon": margin} if margin else None)
    left = found.rounds[-1].alive[0]
    losses = found.losses
    assert ((losses.rule[0] == 0) == left).all()
    assert (~left).any()
    for k in np.flatnonzero(~left).tolist():
        rival, shared, p = (each[0, k] for each in (losses.rival, losses.shared, losses.p))
        assert shared <= min(found.samples[k], found.samples[rival])
        gap = REWARDS[rival, None, :shared] - REWARDS[k, None, :shared]
        evidence = log_evidence(gap, np.array([shared]), margin=margin)
        assert p == pytest.approx(np.exp(-evidence[0]))
        assert p <= found.decisive == pytest.approx(0.05 / 3)
        assert found.labels[rival] in found.loss(k)
        assert f"on {shared} shared samples, p = {p:.2g}" in found.loss(k)


def test_what_was_not_retired_lost_to_nobody_and_the_table_says_who_did() -> None:
    found = raced("arm_elimination")
    table = found.frame().set_index("configuration")
    for k, label in enumerate(found.labels):
        retired = not found.rounds[-1].alive[0, k]
        assert bool(found.loss(k)) == retired == bool(table.loc[label, "lost_to"])
        assert np.isfinite(table.loc[label, "p"]) == retired


def test_other_rules_say_that_no_test_decided() -> None:
    halved = raced("successive_halving")
    lost = np.flatnonzero(~halved.rounds[-1].alive[0])
    assert lost.size
    assert {RULES[k] for k in halved.losses.rule[0, lost]} == {"mean"}
    assert np.isnan(halved.losses.p).all()
    assert all("by the mean alone" in halved.loss(k) for k in lost.tolist())
    common = raced("arm_elimination", interval="compat")
    gone = np.flatnonzero(~common.rounds[-1].alive[0])
    assert {RULES[k] for k in common.losses.rule[0, gone]} == {"intervals"}
    assert all("by intervals of the mean ± 1 SE" in common.loss(k) for k in gone.tolist())
    low = raced("threshold", parameters={"threshold": 0.5})
    assert {k for k in range(4) if "below the threshold" in low.loss(k)} == {0, 3}
    assert (low.losses.rival == -1).all()


def test_nothing_is_lost_before_a_race() -> None:
    empty = Losses.none((2, 3))
    assert (empty.at(1).rule == 0).all()
    assert empty.at(1).rival.shape == (1, 3)
