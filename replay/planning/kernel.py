"""The child-outcome kernel: the children of a parent of a given fitness, and simulated runs.

A greedy run is close to a Markov chain in fitness: each child of a parent is better by so much, or
is not. The kernel is estimated from logged children, those of every N, and then runs cells (T, N).

- Fitness f is seen as z = -log((top - f) / width + RESOLUTION): top is the best known fitness or
  the best logged one if that is higher, width its distance from the lowest parent. A step in z
  takes away a share of the gap that remains; no scale of fitness changes it. States are points of a
  grid in z. The initial program, which every run starts from, is a state of its own.
- A visit is one run's stay at one parent. The probability that a child is better, and the
  distribution of its step in z, are averages over the visits near a state (Gaussian weights). A
  visit with e children counts e / (1 + e / CROWD): they share a parent, so they are less evidence
  than e children of different parents.
- Runs differ: each multiplies all its probabilities by a factor of its own, from a gamma
  distribution of mean 1. Parents of equal fitness differ too, some are dead ends: each arrival at a
  state draws its probability from a beta distribution around the run's mean. The variance of the
  one and the concentration of the other have a posterior over a grid (`_spread`).
- Where little was logged, a straight line takes over: log-odds of a better child linear in z, with
  a prior on the slope (what a rewrite gains gets rarer as the gap closes), and exponential steps.
  It weighs as much as PRIOR_CHILDREN children.

The pilot's own uncertainty is that of kernels of resampled whole runs, each with its own prior
slope, its own draw of variance and concentration, and its own level: the mean of n runs' factors is
itself unknown by variance / n.

The best of N children is one draw, from the N-th power of a child's distribution function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replay.logs.frames import Brief, require_alike, require_greedy, unrepeated
from replay.logs.given import check_loaded
from replay.planning.grid import FloatArray, IntArray, best_known, what_to_give

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STATES = 400
RESOLUTION = 1e-3
CROWD = 64.0
NEAREST, WIDEST = 20, 0.5
PRIOR_CHILDREN = 10.0
SLOPE, SLOPE_DEVIATION = -0.5, 0.4  # of the log-odds by z
CONCENTRATIONS = 2.0 ** np.arange(10, -2, -1)
VARIANCES = np.array([0.01, 0.1, 0.3, 0.8, 2.0])
ROUNDS = 2  # of estimating the kernel and the runs' factors in turn
NODES = 7  # of the gamma distribution of a run's factor
FEWEST = 5  # runs that must have been as deep and as broad as a cell that is predicted
BEYOND = 0.05  # of the way from the lowest fitness to `best` that fitness may lie beyond it


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The visits of runs at parents, and their better children; a run may count several times."""

    run: IntArray  # by visit, as the next four
    first: NDArray[np.bool_]  # the parent is the initial program
    z: FloatArray  # of the parent; NaN while nothing is ok
    tried: FloatArray  # children
    better: FloatArray  # better children
    child: IntArray  # visit of each better child
    child_z: FloatArray
    child_fitness: FloatArray
    top: float  # upper end of the transform, in fitness
    width: float  # its unit
    grid: FloatArray  # points in z
    near: FloatArray  # weight of each visit at each state, (states, visits)
    steps: csr_array  # better children by visit and length of their step in points
    mean: float  # step in z of better children, those of the initial program aside
    factor: FloatArray  # posterior mean of each run's
    spread: FloatArray  # posterior over (VARIANCES, CONCENTRATIONS)


@dataclass(frozen=True, kw_only=True, repr=False)
class Kernel(Brief):
    """Outcome of a child by the fitness of its parent.

    State 0 is the initial program, states 1, ..., STATES - 1 a grid in z.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        sizes: N of each run that it was estimated from, (runs,).
        depths: Generations of each, (runs,).
        fitness: Fitness of each state, (states,); NaN for state 0 if the initial program has none.
        better: Probability that a child of a run of factor 1 is better than its parent, (states,).
        steps: Distribution function of the state that a better child leads to, (states, states).
        concentration: Similarity of parents of equal fitness: the sum of the beta parameters.
        variance: Of the runs' factors.
        level: Multiplier of all factors; 1 except in resampled kernels.
        seen: Whether parents of at least three runs were logged close to the state, (states,):
            within a fifth of the gap. Elsewhere the kernel extrapolates.
        visits: The data, for resampling.
    """

    task: str
    model: str
    sizes: IntArray
    depths: IntArray
    fitness: FloatArray
    better: FloatArray
    steps: FloatArray
    concentration: float
    variance: float
    level: float
    seen: NDArray[np.bool_]
    visits: Visits = field(repr=False)

    def inside(self, generations: int, children: int) -> bool:
        """Whether a cell is within the logged range.

        It does if FEWEST runs of at least as many children were at least as deep, and a run had
        no more children.
        """
        covered = (self.sizes >= children) & (self.depths >= generations)
        return bool(covered.sum() >= FEWEST and self.sizes.min() <= children)

    def simulate(
        self, generations: int, children: int, *, runs: int = 1000, seed: int = 0
    ) -> FloatArray:
        """Best fitness so far of simulated runs, (runs, T + 1), column 0 the initial program."""
        return simulate_kernels([self], generations, children, runs=runs, seed=seed)

    @functools.cached_property
    def _ladder(self) -> FloatArray:
        """Row k of `steps` raised by k, all in one ascending vector, for one search in all rows."""
        return np.asarray((self.steps + np.arange(len(self.steps))[:, None]).ravel())

    def resampled(self, count: int, *, seed: int = 0) -> Iterator[Kernel]:
        """Kernels of resampled runs; see the module's docstring."""
        n = len(self.sizes)
        rng = np.random.default_rng([seed, n])
        spread = self.visits.spread.ravel()
        for _ in range(count):
            weights = np.bincount(rng.integers(0, n, n), minlength=n)
            slope = rng.normal(SLOPE, SLOPE_DEVIATION)
            row, column = divmod(int(rng.choice(len(spread), p=spread)), len(CONCENTRATIONS))
            variance = float(VARIANCES[row])
            better, steps = _estimate(self.visits, weights, slope)
            yield replace(
                self, better=better, steps=steps, variance=variance,
                level=float(rng.gamma(n / variance, variance / n)),
                concentration=float(CONCENTRATIONS[column]),
            )  # fmt: skip


def simulate_kernels(
    kernels: Sequence[Kernel], generations: int, children: int, *, runs: int, seed: int
) -> FloatArray:
    """Best fitness so far of simulated runs, (kernels * runs, T + 1), column 0 the initial program.

    Runs of kernel k depend on the seed `seed` + k alone, however many kernels there are.
    """
    if min(generations, children, runs) < 1:
        raise ValueError(
            "expected at least one generation, child and run, "
            f"got {generations!r}, {children!r} and {runs!r}"
        )
    rngs = [np.random.default_rng([seed + k, children]) for k in range(len(kernels))]
    factors = [
        each.level * rng.gamma(1 / each.variance, each.variance, runs)
        for each, rng in zip(kernels, rngs, strict=True)
    ]
    factor, rates = np.concatenate(factors), np.stack([each.better for each in kernels])
    concentrations = np.array([each.concentration for each in kernels])
    states = np.zeros((len(kernels) * runs, generations + 1), dtype=np.int64)
    alive, at, state = np.arange(len(states)), *np.zeros((2, len(states)), dtype=np.int64)
    better = _rate(rates[alive // runs, 0] * factor)
    while len(alive):  # from each run's better child to its next
        none = children * np.log1p(-better)  # log probability that a generation has none
        wait = np.floor(np.log1p(-_uniform(rngs, alive // runs)) / none) + 1
        kept = wait <= generations - at
        alive, state, better, none = alive[kept], state[kept], better[kept], none[kept]
        at = at[kept] + wait[kept].astype(np.int64)
        of = alive // runs
        # The best of N uniform draws, given that it is among the better children.
        best = np.expm1(np.log1p(np.expm1(none) * _uniform(rngs, of)) / children)
        quantile = np.minimum(np.maximum(1 + best / better, 0), 1 - 1e-9)
        for k, part in _parts(of, len(kernels)):
            ladder = kernels[k]._ladder
            found = np.searchsorted(ladder, state[part] + quantile[part], side="right")
            state[part] = found - state[part] * len(kernels[k].steps)
        states[alive, at] = state
        mean = _rate(rates[of, state] * factor[alive])
        a, b = concentrations[of] * mean, concentrations[of] * (1 - mean)
        drawn = np.empty(len(alive))
        for k, part in _parts(of, len(kernels)):
            drawn[part] = rngs[k].beta(a[part], b[part])
        better = np.minimum(np.maximum(drawn, 1e-12), 1 - 1e-12)
    reached = np.maximum.accumulate(states, axis=1)
    fitness = np.stack([each.fitness for each in kernels])
    return np.asarray(fitness[np.arange(len(states))[:, None] // runs, reached])


def _parts(of: IntArray, count: int) -> Iterator[tuple[int, slice]]:
    """Each kernel with its slice of `of`, the ascending numbers of kernels."""
    ends = np.searchsorted(of, np.arange(count), side="right").tolist()
    for k, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
        if stop > start:
            yield k, slice(start, stop)


def _uniform(rngs: Sequence[np.random.Generator], of: IntArray) -> FloatArray:
    """A uniform draw for each entry of `of`, from the generator of its kernel."""
    counts = np.bincount(of, minlength=len(rngs)).tolist()
    return np.concatenate([rng.random(n) for rng, n in zip(rngs, counts, strict=True)])


def fit_kernel(children: pd.DataFrame, *, best: float | None = None) -> Kernel:
    """Estimate the kernel of one task and one model.

    Args:
        children: One row per child, as `replay.children` returns it.
        best: The best known fitness of the task, on the scale of the table; None: 1, where that is
            not far from what was reached (`replay.planning.grid.best_known`).

    Raises:
        ValueError: If a column is missing, there is no child, several tasks or models are mixed,
            nothing has a fitness, or fitness lies far beyond `best`.

    Example:
        >>> kernel = replay.fit_kernel(replay.children(path), best=0.01)
        >>> type(kernel).__name__
        'Kernel'
    """
    check_loaded("fit_kernel", children, "replay.children")
    needed = {"run", "task", "model", "children", "generation", "fitness", "parent_fitness",
              "improved"}  # fmt: skip
    if missing := sorted(needed - set(children.columns)):
        raise ValueError(
            f"expected a table as replay.children makes it, but it has no column {missing!r}; "
            f"it has {sorted(children.columns)!r}"
        )
    children = unrepeated(children)
    require_greedy(children, "a plan")
    names = children[["task", "model"]].drop_duplicates().to_numpy().tolist()
    if len(names) != 1:
        raise ValueError(
            f"expected children of one task and one model, got {names or 'generation 0 alone'}; "
            "select one with children[(children.task == ...) & (children.model == ...)]"
        )
    require_alike(children, "expected children")
    if not children[["fitness", "parent_fitness"]].notna().any(axis=None):
        raise ValueError(
            f"expected a fitness among the {len(children)} children or their parents, got none"
        )
    task, model = names[0]
    children = _without_inherited(children)
    visits = _visits(children, best)
    runs = children.groupby("run", sort=False)[["children", "generation"]].max()
    better, steps = _estimate(visits, np.ones(len(runs)), SLOPE)
    variance, concentration = np.unravel_index(visits.spread.argmax(), visits.spread.shape)
    return Kernel(
        task=task, model=model, sizes=runs["children"].to_numpy(np.int64),
        depths=runs["generation"].to_numpy(np.int64), fitness=_fitness(visits),
        better=better, steps=steps, concentration=float(CONCENTRATIONS[concentration]),
        variance=float(VARIANCES[variance]), level=1.0, seen=_seen(visits),
        visits=visits,
    )  # fmt: skip


def _without_inherited(children: pd.DataFrame) -> pd.DataFrame:
    """Leaves out what forks inherited of a run that is there itself, or in another fork."""
    if "inherited" not in children or not children["inherited"].any():
        return children
    order = children.sort_values("forked_from", kind="stable")  # runs that are no fork first
    owner = order.groupby("root")["run"].first()
    theirs = children["inherited"] & (children["run"] != children["root"].map(owner))
    return children[~theirs]


def _rate(better: FloatArray) -> FloatArray:
    return np.minimum(np.maximum(better, 1e-12), 0.999)


def _visits(children: pd.DataFrame, best: float | None) -> Visits:
    from scipy.sparse import csr_array

    run = children["run"].factorize()[0]
    order = np.lexsort((children["generation"].to_numpy(), run))
    run = run[order]
    generation = children["generation"].to_numpy(np.int64)[order]
    parent = children["parent_fitness"].to_numpy(np.float64)[order]
    fitness = children["fitness"].to_numpy(np.float64)[order]
    improved = children["improved"].to_numpy(bool)[order]
    known = np.concatenate([parent, fitness[improved]])
    lowest, highest = float(np.nanmin(known)), float(np.nanmax(known))
    best = best_known(best, lowest, highest)
    if not lowest < best or highest > best + BEYOND * (best - lowest):
        raise ValueError(
            f"expected best= to be the best known fitness, got {best!r} where {lowest:g} to "
            f"{highest:g} was logged; {what_to_give(lowest, highest)}"
        )
    top = max(best, highest)

    def z(values: FloatArray) -> FloatArray:
        # Rounded, so that no scale of fitness moves a value across a point of the grid.
        return -np.log(np.round((top - values) / (top - lowest), 9) + RESOLUTION)

    same = (run[1:] == run[:-1]) & (
        (parent[1:] == parent[:-1]) | (np.isnan(parent[1:]) & np.isnan(parent[:-1]))
    )
    visit = np.concatenate([[0], np.cumsum(~same)])
    begin = np.flatnonzero(np.concatenate([[True], ~same]))
    first, parent_z = generation[begin] == 1, z(parent[begin])
    child, child_z = visit[improved], z(fitness[improved])
    lowest_z = min(parent_z[np.isfinite(parent_z)].min(initial=np.inf), child_z.min(initial=np.inf))
    grid = np.linspace(lowest_z, -np.log(RESOLUTION), STATES - 1)
    spacing, start = grid[1] - grid[0], first[child]
    origin = np.where(start, grid[0], parent_z[child])
    size = np.clip(np.rint((child_z - origin) / spacing), 0, STATES - 2)
    placed = (np.ones(len(size)), (child, size.astype(np.int64)))
    visits = Visits(
        run=run[begin], first=first, z=parent_z, tried=np.bincount(visit).astype(np.float64),
        better=np.bincount(visit, improved).astype(np.float64), child=child, child_z=child_z,
        child_fitness=fitness[improved], top=top, width=top - lowest, grid=grid,
        near=np.vstack([first.astype(np.float64), _near(grid, np.where(first, np.inf, parent_z))]),
        steps=csr_array(placed, shape=(len(begin), STATES)),
        mean=float((size[~start].sum() * spacing + 0.5) / ((~start).sum() + 1)),
        factor=np.ones(run.max() + 1), spread=np.ones((len(VARIANCES), len(CONCENTRATIONS))),
    )  # fmt: skip
    at = np.where(first, 0, 1 + np.clip(np.searchsorted(grid, parent_z), 0, len(grid) - 1))
    for _ in range(ROUNDS):
        mean, _ = _estimate(visits, np.ones(len(visits.factor)), SLOPE)
        factor, spread = _spread(visits, mean[at])
        visits = replace(visits, factor=factor, spread=spread)
    return visits


def _estimate(
    visits: Visits, run_weights: FloatArray | IntArray, slope: float
) -> tuple[FloatArray, FloatArray]:
    """`better` and `steps` of a kernel whose runs count `run_weights` times each, (runs,)."""
    grid, initial = visits.grid, float(visits.z[visits.first][0])
    crowd = run_weights[visits.run] / (1 + visits.tried / CROWD)
    weights = visits.near * crowd
    exposed = visits.tried * visits.factor[visits.run]  # children, as of a run of factor 1
    line = _line(visits, crowd, np.maximum(exposed, visits.better), slope)
    prior = line(np.concatenate([[initial if np.isfinite(initial) else grid[0]], grid]))
    better = weights @ visits.better + PRIOR_CHILDREN * prior
    steps = _steps(visits, weights, PRIOR_CHILDREN * prior)
    return _rate(better / (weights @ exposed + PRIOR_CHILDREN)), steps


def _fitness(visits: Visits) -> FloatArray:
    """Fitness of each state: what was logged there most often, since thresholds lie on it."""
    grid, initial = visits.grid, visits.z[visits.first][:1]
    gap = np.exp(-np.concatenate([initial, grid])) - RESOLUTION
    fitness: FloatArray = visits.top - visits.width * gap
    state = 1 + np.rint((visits.child_z - grid[0]) / (grid[1] - grid[0])).astype(np.int64)
    pairs, counts = np.unique(np.stack([state, visits.child_fitness]), axis=1, return_counts=True)
    order = np.argsort(counts, kind="stable")
    fitness[pairs[0, order].astype(np.int64)] = pairs[1, order]  # the most frequent one comes last
    return fitness


def _spread(visits: Visits, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior means of the runs' factors, (runs,), and over (VARIANCES, CONCENTRATIONS).

    Given its run's factor, a visit's better children are binomial at the initial program, which is
    the same for all runs, and beta-binomial elsewhere; factors are integrated over NODES quantiles.
    `mean`, (visits,), is the probability of a better child for a run of factor 1.
    """
    from scipy.special import betaln, gammaincinv, logsumexp, xlog1py, xlogy

    tried, better, runs = visits.tried, visits.better, int(visits.run.max()) + 1
    order = np.argsort(visits.run, kind="stable")
    begin = np.searchsorted(visits.run[order], np.arange(runs))
    later = ~visits.first
    prior = -0.5 * (np.log(CONCENTRATIONS / 16) / 1.5) ** 2
    likelihood = np.tile(prior, (len(VARIANCES), 1))
    factors = np.empty((*likelihood.shape, runs))
    for row, variance in enumerate(VARIANCES):
        nodes = gammaincinv(1 / variance, (np.arange(NODES) + 0.5) / NODES)
        nodes = nodes[:, None] / nodes.mean()
        rate = _rate(nodes * mean)
        of_visit = xlogy(better, rate) + xlog1py(tried - better, -rate)
        for column, s in enumerate(CONCENTRATIONS):
            a, b = s * rate[:, later], s * (1 - rate[:, later])
            of_visit[:, later] = betaln(a + better[later], b + (tried - better)[later])
            of_visit[:, later] -= betaln(a, b)
            of_run = np.add.reduceat(of_visit[:, order], begin, axis=1)  # (nodes, runs)
            total = logsumexp(of_run, axis=0)
            likelihood[row, column] += total.sum()
            factors[row, column] = (nodes * np.exp(of_run - total)).sum(axis=0)
    spread = np.exp(likelihood - logsumexp(likelihood))
    return np.tensordot(spread, factors, 2), spread


def _near(grid: FloatArray, z: FloatArray) -> FloatArray:
    """Gaussian weights, (points, visits), as wide as the NEAREST-th visit is far, or WIDEST."""
    distance = np.abs(grid[:, None] - z)
    distance = np.where(np.isnan(distance), np.inf, distance)
    rank = min(NEAREST, distance.shape[1]) - 1
    width = np.partition(distance, rank, axis=1)[:, rank]
    width = np.clip(width, grid[1] - grid[0], WIDEST)
    return np.asarray(np.exp(-0.5 * (distance / width[:, None]) ** 2))


def _line(
    visits: Visits, crowd: FloatArray, exposed: FloatArray, slope: float
) -> Callable[[FloatArray], FloatArray]:
    """Probability of a better child by z: logistic regression with a normal prior on the slope."""
    from scipy.special import expit

    known = np.isfinite(visits.z)
    z, weight = visits.z[known], crowd[known]
    tried, better = weight * exposed[known], weight * visits.better[known]
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


def _steps(visits: Visits, weights: FloatArray, prior: FloatArray) -> FloatArray:
    """See `Kernel.steps`; `prior`, (states,): better children that exponential steps weigh."""
    spacing = visits.grid[1] - visits.grid[0]
    offsets = (visits.steps.T @ weights.T).T
    edges = np.exp(-spacing / visits.mean * np.arange(STATES + 1))
    offsets[1:] += prior[1:, None] * (edges[:-1] - edges[1:])
    later = np.arange(STATES)[None, :] - np.arange(STATES)[:, None]  # points above each state
    placed = np.where(later < 0, 0.0, np.take_along_axis(offsets, np.maximum(later, 0), axis=1))
    placed[:, -1] += offsets.sum(axis=1) - placed.sum(axis=1)  # beyond the last point
    placed[0, 0], placed[0, 1:] = 0.0, offsets[0, :-1]
    if not placed[0].any():
        placed[0] = placed[1]
    cumulated = np.cumsum(placed, axis=1)
    return np.asarray(cumulated / cumulated[:, -1:])


def _seen(visits: Visits) -> NDArray[np.bool_]:
    """See `Kernel.seen`."""
    near = np.abs(visits.grid[:, None] - visits.z) < np.log(1.25)
    of_run = visits.run[:, None] == np.arange(visits.run.max() + 1)
    return np.concatenate([[True], (near.astype(float) @ of_run > 0).sum(axis=1) >= 3])
