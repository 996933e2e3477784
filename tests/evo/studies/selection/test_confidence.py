"""Intervals and evidence that hold at every sample size at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_evidence import slow_evidence, slow_interval

from evo.studies.selection.confidence import ConfidenceSequence, log_evidence


@given(st.data())
def test_evidence_is_that_of_the_paper_whatever_the_batches(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 30))
    x = np.array(data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    cut, alpha = data.draw(st.integers(0, size)), data.draw(st.sampled_from([0.05, 0.3]))
    parts, row = ConfidenceSequence(2, alpha), np.array([1])
    for part in (x[:cut], x[cut:]):
        if part.size:
            padded = np.append(part, 0.3)[None]
            parts.add(row, padded, np.arange(part.size + 1)[None] < part.size)
    assert (parts.lower[1], parts.upper[1]) == pytest.approx(slow_interval([*x], alpha), abs=1e-9)
    assert (parts.lower[0], parts.upper[0]) == (0.0, 1.0)
    margin = data.draw(st.sampled_from([0.0, 0.1]))
    padded = np.append(2 * x - 1, 0.9)[None]
    found = log_evidence(padded, np.array([size]), margin=margin)
    assert found[0] == pytest.approx(slow_evidence([*(2 * x - 1)], margin), abs=1e-9)


def test_an_interval_never_widens_and_lies_within_0_and_1() -> None:
    rows, sequence = np.array([0]), ConfidenceSequence(1, 0.05)
    before = (0.0, 1.0)
    for x in np.random.default_rng(4).random(200):
        sequence.add(rows, np.array([[x]]), np.array([[True]]))
        low, high = float(sequence.lower[0]), float(sequence.upper[0])
        assert before[0] <= low <= high <= before[1]
        before = low, high
    assert before[1] - before[0] < 0.3


def test_samples_and_their_mirror_image_have_mirrored_intervals() -> None:
    x, taken = np.random.default_rng(5).random((1, 80)), np.ones((1, 80), dtype=bool)
    one, other = ConfidenceSequence(1, 0.1), ConfidenceSequence(1, 0.1)
    one.add(np.array([0]), x, taken)
    other.add(np.array([0]), 1 - x, taken)
    assert other.lower == pytest.approx(1 - one.upper)
    assert other.upper == pytest.approx(1 - one.lower)


def test_less_chance_to_err_is_a_wider_interval() -> None:
    x, taken = np.random.default_rng(6).random((1, 80)), np.ones((1, 80), dtype=bool)
    sure, bold = (ConfidenceSequence(1, alpha) for alpha in (0.01, 0.2))
    for each in (sure, bold):
        each.add(np.array([0]), x, taken)
    assert sure.lower[0] < bold.lower[0] < bold.upper[0] < sure.upper[0]


def test_evidence_never_falls_below_nothing_and_a_margin_adds_to_it() -> None:
    for value, some in ((-0.5, False), (0.0, False), (0.5, True)):
        found = log_evidence(np.full((1, 50), value), np.array([50]))
        assert (found[0] > 0) == some
    none = log_evidence(np.zeros((2, 50)), np.array([50, 50]), margin=0.1)
    assert (none > 0).all()
    assert log_evidence(np.full((1, 50), -0.2), np.array([50]), margin=0.1) == [0.0]


def test_one_sample_is_no_evidence_since_nothing_was_known_before_it() -> None:
    assert log_evidence(np.ones((3, 4)), np.array([0, 1, 2])).tolist()[:2] == [0.0, 0.0]
    assert log_evidence(np.ones((1, 4)), np.array([2]))[0] > 0
