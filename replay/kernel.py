"""The child-outcome kernel: what children a parent of some fitness has, and what follows from it.

A greedy run is close to a Markov chain in fitness: each child of a parent fails, is no better, or
is better by so much. The kernel is estimated from logged children, those of every N, and then runs
cells (T, N) that nobody ran.

- Fitness f is seen as z = -log(top - f + RESOLUTION), top = 1 or the best fitness seen: a step in z
  takes away a share of the gap that remains. States are points of a grid in z. The initial program,
  which every run starts from, is a state of its own.
- A visit is one run's stay at one parent. The probability that a child is better, and the
  distribution of its step in z, are averages over the visits near a state (Gaussian weights). A
  visit with e children counts e / (1 + e / CROWD): they share a parent, so they say less than e
  children of different parents.
- Parents of equal fitness differ: some programs are dead ends. So each arrival at a state draws its
  own probability from a beta distribution around the state's mean, with one concentration for all
  states that maximises the likelihood of the visits (times a wide lognormal prior around 16).
- Where little was logged, a straight line takes over: log-odds of a better child linear in z, with
  a prior on the slope (what a rewrite gains gets rarer as the gap closes), and exponential steps.
  It weighs as much as PRIOR_CHILDREN children. Resampled kernels draw the prior's slope anew.

The best of N children is one draw, from the N-th power of a child's distribution function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STATES = 400
RESOLUTION = 1e-3
CROWD = 64.0
NEAREST, WIDEST = 20, 0.5
PRIOR_CHILDREN = 10.0
SLOPE, SLOPE_DEVIATION = -0.5, 0.4  # of the log-odds by z
CONCENTRATIONS = np.geomspace(4096, 0.5, 27)


@dataclass(frozen=True, kw_only=True)
class Visits:
    """Stays of runs at parents, and the better children they gave.

    Attributes:
        run: Index of the run of each visit, (visits,).
        first: Whether the parent is the initial program, (visits,).
        z: Transformed fitness of the parent, (visits,); NaN while nothing is ok.
        tried: Children, (visits,).
        better: Children that were better, (visits,).
        failed: Children without a fitness, (visits,).
        child: Visit of each better child, (better children,).
        child_z: Its transformed fitness, (better children,).
    """

    run: IntArray
    first: NDArray[np.bool_]
    z: FloatArray
    tried: FloatArray
    better: FloatArray
    failed: FloatArray
    child: IntArray
    child_z: FloatArray


@dataclass(frozen=True)
class _Ground:
    """What kernels of the same visits share, however often each run counts.

    Attributes:
        grid: Points in z, (states - 1,).
        near: Weight of each visit at each state, (states, visits).
        steps: Better children by the length of their step, in points: (visits, states), sparse.
        mean: Mean step in z of better children, those of the initial program aside.
        seen: As of the kernel, (states,).
    """

    grid: FloatArray
    near: FloatArray
    steps: Any
    mean: float
    seen: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Outcome of a child by the fitness of its parent.

    State 0 is the initial program, states 1, ..., STATES - 1 a grid in z.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        runs: Number of runs that it was estimated from.
        fitness: Fitness of each state, (states,); NaN for state 0 if the initial program has none.
        better: Probability that a child is better than its parent, (states,).
        failed: Probability that a child has no fitness, (states,).
        steps: Distribution function of the state that a better child leads to, (states, states).
        concentration: How alike parents of equal fitness are: beta parameters sum to this.
        seen: Whether parents of at least three runs were logged close to the state, (states,):
            within a fifth of the gap. Elsewhere the kernel extrapolates.
        visits: The data, for resampling.
        top: Upper end of the transform.
    """

    task: str
    model: str
    runs: int
    fitness: FloatArray
    better: FloatArray
    failed: FloatArray
    steps: FloatArray
    concentration: float
    seen: NDArray[np.bool_]
    visits: Visits
    top: float

    def simulate(
        self, generations: int, children: int, *, runs: int = 1000, seed: int = 0
    ) -> FloatArray:
        """Best fitness so far of simulated runs.

        Args:
            generations: T.
            children: N.
            runs: Number of runs.
            seed: Key of the generator.

        Returns:
            (runs, T + 1), column 0 the initial program.
        """
        return self.fitness[self.simulate_states(generations, children, runs=runs, seed=seed)]

    def simulate_states(
        self, generations: int, children: int, *, runs: int = 1000, seed: int = 0
    ) -> IntArray:
        """States instead of fitness, (runs, T + 1); `seen` tells which are extrapolated."""
        if min(generations, children, runs) < 1:
            raise ValueError(
                "expected at least one generation, child and run, "
                f"got {generations!r}, {children!r} and {runs!r}"
            )
        rng = np.random.default_rng([seed, children])
        flat = (self.steps + np.arange(len(self.steps))[:, None]).ravel()
        states = np.zeros((runs, generations + 1), dtype=np.int64)
        alive, at = np.arange(runs), np.zeros(runs, dtype=np.int64)
        state, better = np.zeros(runs, dtype=np.int64), np.full(runs, self.better[0])
        while len(alive):  # from each run's better child to its next
            none = children * np.log1p(-better)  # log probability that a generation has none
            wait = np.floor(np.log1p(-rng.random(len(alive))) / none) + 1
            kept = wait <= generations - at
            alive, state, better, none = alive[kept], state[kept], better[kept], none[kept]
            at = at[kept] + wait[kept].astype(np.int64)
            # The best of N uniform draws, given that it is among the better children.
            best = np.expm1(np.log1p(np.expm1(none) * rng.random(len(alive))) / children)
            quantile = np.clip(1 + best / better, 0, 1 - 1e-9)
            state = np.searchsorted(flat, state + quantile, side="right") - state * len(self.steps)
            states[alive, at] = state
            better = self._rates(state, rng)
        return np.maximum.accumulate(states, axis=1)

    def resampled(self, count: int, *, seed: int = 0) -> Iterator[Kernel]:
        """Kernels estimated from bootstrap samples of whole runs: the parameters' uncertainty."""
        rng = np.random.default_rng([seed, self.runs])
        ground = _ground(self.visits)
        for _ in range(count):
            weights = np.bincount(rng.integers(0, self.runs, self.runs), minlength=self.runs)
            slope = rng.normal(SLOPE, SLOPE_DEVIATION)
            yield _estimate(self.task, self.model, self.visits, ground, self.top, weights, slope)

    def predict(
        self,
        children: int,
        generations: Sequence[int],
        *,
        of_runs: int = 10,
        kernels: int = 40,
        level: float = 0.95,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Predict what a mean over runs will be, for cells of one N.

        Args:
            children: N.
            generations: T of each cell.
            of_runs: How many runs that mean will be over.
            kernels: Resampled kernels that stand for the parameters' uncertainty.
            level: Nominal coverage of the interval.
            seed: Key of the generator.

        Returns:
            One row per cell: generations, children, value, low, high, and extrapolated, the share
            of runs that end at a fitness at which too few parents were seen.
        """
        import pandas as pd

        depths = np.asarray(generations)
        values, unseen = [], []
        for number, kernel in enumerate(self.resampled(kernels, seed=seed)):
            states = kernel.simulate_states(
                int(depths.max()), children, runs=20 * of_runs, seed=seed + number
            )[:, depths]
            values.append(kernel.fitness[states].reshape(20, of_runs, -1).mean(axis=1))
            unseen.append(1 - self.seen[states].mean(axis=0))
        drawn = np.concatenate(values)
        tail = (1 - level) / 2
        return pd.DataFrame(
            {
                "generations": depths,
                "children": children,
                "value": drawn.mean(axis=0),
                "low": np.quantile(drawn, tail, axis=0),
                "high": np.quantile(drawn, 1 - tail, axis=0),
                "extrapolated": np.mean(unseen, axis=0),
            }
        )

    def _rates(self, state: IntArray, rng: np.random.Generator) -> FloatArray:
        """A probability of a better child for each arrival at a state."""
        mean = self.better[state]
        drawn = rng.beta(self.concentration * mean, self.concentration * (1 - mean))
        return np.clip(drawn, 1e-12, 1 - 1e-12)


def fit_kernel(children: pd.DataFrame) -> Kernel:
    """Estimate the kernel of one task and one model.

    Args:
        children: One row per child, as `replay.children` returns it.

    Raises:
        ValueError: If a column is missing, there is no child, several tasks or models are mixed, or
            nothing has a fitness.
    """
    needed = {"run", "task", "model", "generation", "fitness", "parent_fitness", "improved"}
    if missing := sorted(needed - set(children.columns)):
        raise ValueError(
            f"expected a table as replay.children makes it, but it has no column {missing!r}; "
            f"it has {sorted(children.columns)!r}"
        )
    names = children[["task", "model"]].drop_duplicates().to_numpy().tolist()
    if len(names) != 1:
        raise ValueError(
            f"expected children of one task and one model, got {names!r}; select one with "
            "children[(children.task == ...) & (children.model == ...)]"
        )
    if not children[["fitness", "parent_fitness"]].notna().any(axis=None):
        raise ValueError(
            f"expected a fitness among the {len(children)} children or their parents, got none"
        )
    top = max(1.0, float(children["fitness"].max()))
    visits = _visits(children, top)
    task, model = names[0]
    weights = np.ones(visits.run.max() + 1)
    return _estimate(task, model, visits, _ground(visits), top, weights, SLOPE)


def _visits(children: pd.DataFrame, top: float) -> Visits:
    run = children["run"].factorize()[0]
    order = np.lexsort((children["generation"].to_numpy(), run))
    run = run[order]
    generation = children["generation"].to_numpy(np.int64)[order]
    parent = children["parent_fitness"].to_numpy(np.float64)[order]
    fitness = children["fitness"].to_numpy(np.float64)[order]
    improved = children["improved"].to_numpy(bool)[order]
    same = (run[1:] == run[:-1]) & (
        (parent[1:] == parent[:-1]) | (np.isnan(parent[1:]) & np.isnan(parent[:-1]))
    )
    visit = np.concatenate([[0], np.cumsum(~same)])
    begin = np.flatnonzero(np.concatenate([[True], ~same]))
    count = len(begin)
    return Visits(
        run=run[begin],
        first=generation[begin] == 1,
        z=_z(parent[begin], top),
        tried=_total(visit, np.ones(len(visit)), count),
        better=_total(visit, improved, count),
        failed=_total(visit, np.isnan(fitness), count),
        child=visit[improved],
        child_z=_z(fitness[improved], top),
    )


def _total(visit: IntArray, values: NDArray[Any], count: int) -> FloatArray:
    return np.bincount(visit, values, minlength=count).astype(np.float64)


def _z(fitness: FloatArray, top: float) -> FloatArray:
    return np.asarray(-np.log(top - fitness + RESOLUTION))


def _estimate(
    task: str,
    model: str,
    visits: Visits,
    ground: _Ground,
    top: float,
    run_weights: FloatArray | IntArray,
    slope: float,
) -> Kernel:
    """The kernel of visits whose runs count `run_weights` times each, (runs,)."""
    later = ~visits.first
    initial, grid = float(visits.z[visits.first][0]), ground.grid
    crowd = run_weights[visits.run] / (1 + visits.tried / CROWD)
    weights = ground.near * crowd
    line = _line(visits, crowd, slope)
    prior = line(np.concatenate([[initial if np.isfinite(initial) else grid[0]], grid]))
    tried = weights @ visits.tried + PRIOR_CHILDREN
    better = (weights @ visits.better + PRIOR_CHILDREN * prior) / tried
    at = 1 + np.clip(np.searchsorted(grid, visits.z[later]), 0, len(grid) - 1)
    return Kernel(
        task=task,
        model=model,
        runs=len(run_weights),
        fitness=top + RESOLUTION - np.exp(-np.concatenate([[initial], grid])),
        better=better,
        failed=(weights @ visits.failed + visits.failed.mean()) / (tried + 1 - PRIOR_CHILDREN),
        steps=_steps(ground, weights, PRIOR_CHILDREN * prior),
        concentration=_concentration(
            better[at], visits.tried[later], visits.better[later], run_weights[visits.run[later]]
        ),
        seen=ground.seen,
        visits=visits,
        top=top,
    )


def _ground(visits: Visits) -> _Ground:
    from scipy.sparse import csr_array

    known = np.concatenate([visits.z[np.isfinite(visits.z)], visits.child_z])
    grid = np.linspace(known.min(), -np.log(RESOLUTION), STATES - 1)
    spacing = grid[1] - grid[0]
    start = visits.first[visits.child]
    origin = np.where(start, grid[0], visits.z[visits.child])
    size = np.clip((visits.child_z - origin) / spacing, 0, STATES - 2)
    lower = np.floor(size).astype(np.int64)
    share = size - lower
    # A step that ends between two points is shared between them, so that the mean of z is kept.
    values = np.concatenate([1 - share, share])
    columns = np.concatenate([lower, np.minimum(lower + 1, STATES - 1)])
    rows = np.tile(visits.child, 2)
    return _Ground(
        grid=grid,
        near=np.vstack([visits.first.astype(np.float64), _weights(grid, visits)]),
        steps=csr_array((values, (rows, columns)), shape=(len(visits.z), STATES)),
        mean=float((size[~start].sum() * spacing + 0.5) / ((~start).sum() + 1)),
        seen=_seen(grid, visits),
    )


def _weights(grid: FloatArray, visits: Visits) -> FloatArray:
    """Gaussian weight of each later visit at each point of the grid, (points, visits).

    The bandwidth at a point is the distance to its NEAREST-th nearest visit, at most WIDEST.
    """
    distance = np.abs(grid[:, None] - np.where(visits.first, np.inf, visits.z))
    distance = np.where(np.isnan(distance), np.inf, distance)
    rank = min(NEAREST, distance.shape[1]) - 1
    width = np.partition(distance, rank, axis=1)[:, rank]
    width = np.clip(width, grid[1] - grid[0], WIDEST)
    return np.asarray(np.exp(-0.5 * (distance / width[:, None]) ** 2))


def _line(visits: Visits, crowd: FloatArray, slope: float) -> Callable[[FloatArray], FloatArray]:
    """Probability of a better child by z: logistic regression with a normal prior on the slope."""
    from scipy.special import expit

    known = np.isfinite(visits.z)
    z, weight = visits.z[known], crowd[known]
    tried, better = weight * visits.tried[known], weight * visits.better[known]
    # A resample may hold no run that found anything: then there is the prior alone.
    centre = float(np.average(z, weights=tried) if tried.any() else visits.child_z.mean())
    # One more child, half better, keeps the odds finite where no child or every child is better.
    z, tried, better = np.append(z, centre), np.append(tried, 1.0), np.append(better, 0.5)
    design = np.column_stack([np.ones_like(z), z - centre])
    mean = better.sum() / tried.sum()
    beta = np.array([np.log(mean / (1 - mean)), slope])
    for _ in range(25):
        rate = expit(design @ beta)
        gradient = design.T @ (better - tried * rate)
        gradient[1] -= (beta[1] - slope) / SLOPE_DEVIATION**2
        hessian = (design * (tried * rate * (1 - rate))[:, None]).T @ design
        hessian[1, 1] += 1 / SLOPE_DEVIATION**2
        beta = beta + np.clip(np.linalg.solve(hessian, gradient), -2, 2)
    return lambda at: np.clip(expit(beta[0] + beta[1] * (at - centre)), 1e-9, 1 - 1e-9)


def _steps(ground: _Ground, weights: FloatArray, prior: FloatArray) -> FloatArray:
    """Distribution function of the state that a better child leads to, (states, states).

    `prior` (states,) is how many better children the exponential distribution weighs.
    """
    states, spacing = len(ground.grid) + 1, ground.grid[1] - ground.grid[0]
    offsets = (ground.steps.T @ weights.T).T
    edges = np.exp(-spacing / ground.mean * np.arange(states + 1))
    offsets[1:] += prior[1:, None] * (edges[:-1] - edges[1:])
    placed = np.zeros((states, states))
    placed[0, 1:] = offsets[0, :-1]
    for state in range(1, states):
        room = states - state
        placed[state, state:] = offsets[state, :room]
        placed[state, -1] += offsets[state, room:].sum()
    if not placed[0].any():
        placed[0] = placed[1]
    cumulated = np.cumsum(placed, axis=1)
    return np.asarray(cumulated / cumulated[:, -1:])


def _concentration(
    mean: FloatArray, tried: FloatArray, better: FloatArray, weights: FloatArray | IntArray
) -> float:
    """Beta-binomial concentration of the largest posterior."""
    from scipy.special import betaln

    s = CONCENTRATIONS[:, None]
    likelihood = betaln(s * mean + better, s * (1 - mean) + tried - better) - betaln(
        s * mean, s * (1 - mean)
    )
    prior = -0.5 * (np.log(CONCENTRATIONS / 16) / 1.5) ** 2
    return float(CONCENTRATIONS[(likelihood @ weights + prior).argmax()])


def _seen(grid: FloatArray, visits: Visits) -> NDArray[np.bool_]:
    """Whether visits of at least three runs lie within a fifth of the gap of each state."""
    near = np.abs(grid[:, None] - visits.z) < np.log(1.25)
    runs = np.zeros((len(grid), int(visits.run.max()) + 1), dtype=bool)
    for run in range(runs.shape[1]):
        runs[:, run] = near[:, visits.run == run].any(axis=1)
    return np.concatenate([[True], runs.sum(axis=1) >= 3])
