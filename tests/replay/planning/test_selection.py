import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from samples import write_sample

import replay
from evo.studies.selection import SELECTORS
from replay.plots import race as selection_race
from replay.plots.style import subplots


def frame(matrix: np.ndarray) -> pd.DataFrame:
    """One row per configuration and seed; fitness NaN is a failure."""
    return pd.DataFrame(
        [
            {"children": 2**k, "model": "m", "seed": s, "fitness": value, "n_calls": 3 * 2**k}
            for k, row in enumerate(matrix)
            for s, value in enumerate(row)
        ]
    )


def clear(size: int = 120) -> np.ndarray:
    draws = np.random.default_rng(0).normal([[0.2], [0.9], [0.5]], 0.1, (3, size))
    return np.clip(draws, 0, 1)


def test_frame_and_matrix_agree() -> None:
    matrix = clear()
    matrix[0, 3] = np.nan
    one, other = replay.select(matrix), replay.select(frame(matrix))
    assert other.labels == ("children=1", "children=2", "children=4")
    assert one.winner == other.winner == 1
    assert one.end == other.end == "certain"
    assert one.samples.tolist() == other.samples.tolist()
    assert other.failures.tolist() == one.failures.tolist() == [1, 0, 0]
    assert other.spent["calls"].tolist() == (other.samples * [3, 6, 12]).tolist()
    assert other.samples.max() < 120


def test_a_run_counts_with_its_last_generation() -> None:
    last = frame(clear(8))
    first = last.assign(fitness=0.0, generation=0, n_calls=0)
    both = pd.concat([first, last.assign(generation=1)]).sample(frac=1, random_state=1)
    found, plain = replay.select(both.sort_values("children")), replay.select(last)
    assert found.mean.tolist() == plain.mean.tolist()
    assert found.spent["calls"].tolist() == plain.spent["calls"].tolist()


def test_of_logs_only_what_identifies_a_configuration_tells_it_apart(tmp_path) -> None:
    for N in (2, 3):
        for seed in range(3):
            write_sample(tmp_path / f"{N}-{seed}.jsonl", children=N, seed=seed)
    found = replay.select(replay.load(tmp_path), missing="drop")
    assert found.labels == ("children=2", "children=3")


def test_a_field_that_was_not_asked_is_not_named() -> None:
    rows = frame(clear(8))
    rows["top_p"] = np.where(rows["children"] == 1, np.nan, 0.5)
    assert replay.select(rows).labels[:2] == ("children=1", "children=2, top_p=0.5")


def test_missing_seeds() -> None:
    rows = frame(clear(30))
    short = rows[(rows.children != 1) | (rows.seed < 20)]
    with pytest.warns(UserWarning, match="10 of 30 samples are not of all configurations"):
        dropped = replay.select(short)
    assert dropped.terms.size == 20
    stopped = replay.select(short, missing="stop", selector="brute_force")
    assert stopped.samples.max() <= 30
    assert stopped.samples[0] <= 20
    assert stopped.end == "exhausted"
    with pytest.raises(ValueError, match="no sample is common"):
        replay.select(rows[(rows.children == 1) ^ (rows.seed < 15)])


def test_shuffles_say_how_many_samples_suffice() -> None:
    found = replay.select(clear(), shuffles=30)
    assert found.shuffled.shape == found.shuffled_winner.shape == (30,)
    assert (found.shuffled_winner == 1).all()
    assert found.shuffled_certain.all()
    assert (found.shuffled < 3 * 120).all()
    assert len(set(found.shuffled.tolist())) > 1
    assert replay.select(clear(), shuffles=30).shuffled.tolist() == found.shuffled.tolist()


def test_shuffles_say_which_orders_end_without_an_answer() -> None:
    few = replay.select(clear(6), shuffles=10)
    assert few.end == "exhausted"
    assert few.shuffled_certain.tolist() == [False] * 10
    assert (few.shuffled_winner == 1).all()  # the one that was ahead


@pytest.mark.parametrize("selector", sorted(SELECTORS))
def test_many_configurations(selector: str) -> None:
    matrix = np.random.default_rng(1).random((300, 10))
    own = {"threshold": 0.2} if selector == "threshold" else {}
    found = replay.select(matrix, selector=selector, parameters=own)
    assert found.winner in found.survivors
    if selector != "successive_halving":
        assert found.winner == matrix.mean(axis=1).argmax()


def test_mistakes_are_named() -> None:
    rows = frame(clear(3))
    with pytest.raises(ValueError, match=r"shape .configurations, samples."):
        replay.select([1.0, 2.0])
    with pytest.raises(ValueError, match="expected a column 'problem'"):
        replay.select(rows, sample="problem")
    with pytest.raises(ValueError, match="no column tells configurations apart"):
        replay.select(rows[rows.children == 1])
    with pytest.raises(ValueError, match="two rows of"):
        replay.select(pd.concat([rows, rows]))
    with pytest.raises(ValueError, match="'drop' or 'stop'"):
        replay.select(rows, missing="close")  # type: ignore[arg-type]


def test_race_is_drawn_round_by_round() -> None:
    found = replay.select(clear())
    for rounds in (1, len(found.rounds), None):
        ax = selection_race(found, rounds=rounds, theme="dark")
        assert isinstance(ax.figure, Figure)
        assert len(ax.get_yticklabels()) == 3
    assert found.end == "certain"
    assert ax.get_title(loc="left") == "Race by arm_elimination: winner configuration 1"
    few = replay.select(clear(3))
    assert few.end == "exhausted"
    assert "not certain, as there are no further samples" in selection_race(few).get_title("left")
    lone = selection_race(replay.select(np.full((1, 5), 0.5)))
    assert [text.get_text() for text in lone.texts] == [
        "No sample was taken: winner configuration 0."
    ]
    own = subplots()[1][0]
    assert selection_race(found, ax=own, named=2) is own
    assert "1 more configurations not drawn" in own.get_xlabel()
    with pytest.raises(ValueError, match="rounds: expected from 1"):
        selection_race(found, rounds=0)
