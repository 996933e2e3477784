"""What the offline model knows about packing 26 circles into the unit square."""

from __future__ import annotations

from evo.llm.offline.bank import NUDGE, SEED, Argument, Bank, Idea

HELPERS = {
    "nearest": '''
def nearest(centers):
    """Return radii of half the distance to the nearest centre, or less at a wall."""
    delta = centers[:, None] - centers[None]
    distance = np.sqrt((delta * delta).sum(axis=2))
    np.fill_diagonal(distance, np.inf)
    wall = np.minimum(centers, 1 - centers).min(axis=1)
    return np.clip(np.minimum(wall, distance.min(axis=1) / 2), 0.0, None)
''',
    "nudge": NUDGE.replace("points", "centers").replace(
        "return centers", "return np.clip(centers, 0.0, 1.0)"
    ),
}

LAYOUTS = (
    Idea(
        name="scatter",
        title="random centres",
        weight=2.0,
        arguments={"seed": SEED, "margin": Argument(0.03, 0.15)},
        source='''
def scatter(seed, margin):
    """Draw centres at random, away from the walls."""
    return margin + (1 - 2 * margin) * np.random.default_rng(seed).random((26, 2))
''',
    ),
    Idea(
        name="rings",
        title="concentric rings",
        weight=3.0,
        arguments={
            "inner": Argument(0.12, 0.3),
            "outer": Argument(0.35, 0.5),
            "twist": Argument(0.0, 1.0),
        },
        choices={"counts": ((1, 8, 17), (1, 9, 16), (2, 8, 16), (1, 10, 15), (4, 9, 13))},
        source='''
def rings(counts, inner, outer, twist):
    """Place centres on rings, pushed out towards the corners of the square."""
    rows = []
    for count, radius in zip(counts, (0.0 if counts[0] == 1 else 0.08, inner, outer)):
        angle = 2 * np.pi * np.arange(count) / count + twist * radius
        way = np.column_stack([np.cos(angle), np.sin(angle)])
        rows.append(0.5 + radius * way / np.abs(way).max(axis=1, keepdims=True) ** (2 * radius))
    return np.clip(np.concatenate(rows), 0.05, 0.95)
''',
    ),
    Idea(
        name="halton",
        title="a Halton sequence",
        weight=1.5,
        arguments={"skip": Argument(0, 200, "whole"), "margin": Argument(0.04, 0.14)},
        source='''
def halton(skip, margin):
    """Spread centres by the Halton sequence in bases 2 and 3."""
    centers = np.zeros((26, 2))
    number = np.arange(26) + 1 + skip
    for axis, base in enumerate((2, 3)):
        for digit in range(9):
            centers[:, axis] += (number // base**digit % base) / base ** (digit + 1)
    return margin + (1 - 2 * margin) * centers
''',
    ),
    Idea(
        name="staggered",
        title="staggered rows",
        weight=0.7,
        arguments={"margin": Argument(0.06, 0.14), "shift": Argument(-0.05, 0.05)},
        choices={
            "rows": (
                (5, 5, 5, 5, 6),
                (6, 5, 5, 5, 5),
                (5, 6, 5, 5, 5),
                (5, 5, 6, 5, 5),
                (4, 5, 4, 5, 4, 4),
                (5, 4, 5, 4, 5, 3),
            )
        },
        source='''
def staggered(rows, margin, shift):
    """Place centres on horizontal rows, every other row shifted."""
    lines = []
    for number, count in enumerate(rows):
        x = np.linspace(margin, 1 - margin, count) + (number % 2 - 0.5) * shift
        y = margin + (1 - 2 * margin) * number / (len(rows) - 1)
        lines.append(np.column_stack([x, np.full(count, y)]))
    return np.clip(np.concatenate(lines), 0.0, 1.0)
''',
    ),
    Idea(
        name="grid",
        title="a 5 x 5 grid and one more circle",
        weight=0.25,
        arguments={
            "margin": Argument(0.07, 0.13),
            "x": Argument(0.0, 1.0),
            "y": Argument(0.0, 1.0),
        },
        source='''
def grid(margin, x, y):
    """Place centres on a 5 x 5 grid; the last one goes to (x, y)."""
    line = np.linspace(margin, 1 - margin, 5)
    a, b = np.meshgrid(line, line)
    return np.append(np.column_stack([a.ravel(), b.ravel()]), [[x, y]], axis=0)
''',
    ),
)

MOVES = (
    Idea(
        name="jitter",
        title="a little noise",
        weight=2.5,
        arguments={"seed": SEED, "scale": Argument(0.002, 0.05)},
        source='''
def jitter(centers, seed, scale):
    """Add noise and stay in the square."""
    noise = np.random.default_rng(seed).standard_normal(centers.shape)
    return np.clip(centers + scale * noise, 0.0, 1.0)
''',
    ),
    Idea(
        name="spread",
        title="scaling around the middle",
        weight=1.5,
        arguments={"factor": Argument(0.85, 1.15)},
        source='''
def spread(centers, factor):
    """Scale the centres around the middle of the square."""
    return np.clip(0.5 + factor * (centers - 0.5), 0.02, 0.98)
''',
    ),
    Idea(
        name="relax",
        title="pushing overlapping circles apart",
        weight=0.8,
        arguments={
            "steps": Argument(5, 60, "whole"),
            "size": Argument(0.08, 0.115),
            "rate": Argument(0.05, 0.5),
        },
        ms_per={"steps": 0.04},
        source='''
def relax(centers, steps, size, rate):
    """Push circles of one size apart and away from the walls."""
    for _ in range(steps):
        delta = centers[:, None] - centers[None]
        distance = np.sqrt((delta * delta).sum(axis=2)) + np.eye(len(centers)) + 1e-9
        overlap = np.clip(2 * size - distance, 0.0, None)
        push = (delta / distance[:, :, None] * overlap[:, :, None]).sum(axis=1)
        centers = np.clip(centers + rate * push, 0.8 * size, 1 - 0.8 * size)
    return centers
''',
    ),
    Idea(
        name="lloyd",
        title="Lloyd's algorithm",
        weight=0.5,
        arguments={
            "seed": SEED,
            "steps": Argument(1, 15, "whole"),
            "reach": Argument(0.9, 1.0),
        },
        ms_per={"steps": 0.25},
        source='''
def lloyd(centers, seed, steps, reach):
    """Move each centre to the mean of the sample points that are closest to it."""
    sample = np.random.default_rng(seed).random((600, 2))
    for _ in range(steps):
        delta = sample[:, None] - centers[None]
        owner = (delta * delta).sum(axis=2).argmin(axis=1)
        count = np.bincount(owner, minlength=len(centers))
        for axis in range(2):
            total = np.bincount(owner, weights=sample[:, axis], minlength=len(centers))
            centers[:, axis] = np.where(count > 0, total / np.maximum(count, 1), centers[:, axis])
    return 0.5 + (centers - 0.5) * (2 - reach)
''',
    ),
    Idea(
        name="climb",
        title="hill climbing",
        weight=0.5,
        arguments={
            "seed": SEED,
            "steps": Argument(10, 120, "whole"),
            "scale": Argument(0.003, 0.15),
        },
        ms_per={"steps": 0.045},
        source='''
def climb(centers, seed, steps, scale):
    """Move one centre at a time; keep what enlarges the sum of simple radii."""
    rng = np.random.default_rng(seed)
    best = nearest(centers).sum()
    for _ in range(steps):
        trial = centers.copy()
        trial[rng.integers(len(centers))] += scale * rng.standard_normal(2)
        trial = np.clip(trial, 0.0, 1.0)
        value = nearest(trial).sum()
        if value > best + 1e-9:
            centers, best = trial, value
    return centers
''',
    ),
    Idea(
        name="refill",
        title="moving the smallest circle to the largest gap",
        weight=0.3,
        arguments={"seed": SEED, "times": Argument(1, 6, "whole")},
        ms_per={"times": 0.3},
        source='''
def refill(centers, seed, times):
    """Move the smallest circle to the emptiest of many random places."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        radii = nearest(centers)
        rest = np.delete(centers, np.round(radii, 9).argmin(), axis=0)
        sample = rng.random((300, 2))
        delta = sample[:, None] - rest[None]
        room = np.sqrt((delta * delta).sum(axis=2)).min(axis=1)
        room = np.minimum(room, 2 * np.minimum(sample, 1 - sample).min(axis=1))
        trial = np.append(rest, sample[[room.argmax()]], axis=0)
        if nearest(trial).sum() > radii.sum() + 1e-9:
            centers = trial
    return centers
''',
    ),
    Idea(
        name="polish",
        title="a few steps of sequential linear programming",
        weight=0.02,
        arguments={"steps": Argument(1, 3, "whole"), "reach": Argument(0.01, 0.06)},
        fixed_ms=1.0,
        ms_per={"steps": 9.0},
        source='''
def polish(centers, steps, reach):
    """Move centres and radii together by linear programs in a small neighbourhood."""
    n = len(centers)
    i, j = np.triu_indices(n, 1)
    row = np.arange(len(i))
    for _ in range(steps):
        delta = centers[i] - centers[j]
        distance = np.sqrt((delta * delta).sum(axis=1)) + 1e-9
        unit = delta / distance[:, None]
        close = distance < 0.5
        a = np.zeros((len(i), 3 * n))
        for axis in range(2):
            a[row, axis * n + i] = -unit[:, axis]
            a[row, axis * n + j] = unit[:, axis]
        a[row, 2 * n + i] = a[row, 2 * n + j] = 1
        walls, limit, k = np.zeros((4 * n, 3 * n)), np.zeros(4 * n), np.arange(n)
        for side, (axis, way) in enumerate(((0, -1), (0, 1), (1, -1), (1, 1))):
            walls[side * n + k, axis * n + k] = way
            walls[side * n + k, 2 * n + k] = 1
            limit[side * n + k] = centers[:, axis] if way < 0 else 1 - centers[:, axis]
        found = linprog(
            np.repeat([0.0, 0.0, -1.0], n),
            A_ub=np.concatenate([a[close], walls]),
            b_ub=np.concatenate([distance[close], limit]),
            bounds=[(-reach, reach)] * (2 * n) + [(0, 0.5)] * n,
        )
        if found.x is None:
            break
        centers = np.clip(centers + found.x[: 2 * n].reshape(2, n).T, 0.0, 1.0)
        reach = reach / 2
    return centers
''',
    ),
)

LASTS = (
    Idea(
        name="uniform_radii",
        title="equal radii",
        weight=1.5,
        source='''
def uniform_radii(centers):
    """Give every circle the largest radius that fits all."""
    return np.full(len(centers), nearest(centers).min())
''',
    ),
    Idea(
        name="simple_radii",
        title="radii of half the nearest distance",
        weight=1.5,
        source='''
def simple_radii(centers):
    """Give every circle half the distance to its nearest neighbour, or less at a wall."""
    return nearest(centers)
''',
    ),
    Idea(
        name="shrunk_radii",
        title="radii shrunk until no pair overlaps",
        weight=1.5,
        arguments={"start": Argument(0.08, 0.25)},
        fixed_ms=1.5,
        source='''
def shrunk_radii(centers, start):
    """Start large; shrink both circles of each overlapping pair."""
    radii = np.minimum(np.minimum(centers, 1 - centers).min(axis=1), start)
    for i in range(len(centers)):
        for j in range(i):
            distance = np.hypot(*(centers[i] - centers[j]))
            if radii[i] + radii[j] > distance:
                scale = distance / (radii[i] + radii[j])
                radii[i] *= scale
                radii[j] *= scale
    return radii
''',
    ),
    Idea(
        name="grown_radii",
        title="radii grown one after the other",
        weight=0.4,
        arguments={"rounds": Argument(1, 3, "whole"), "share": Argument(0.3, 0.9)},
        fixed_ms=0.3,
        ms_per={"rounds": 0.5},
        source='''
def grown_radii(centers, rounds, share):
    """Start from a share of the simple radii; then let each circle grow as far as it can."""
    radii = share * nearest(centers)
    wall = np.minimum(centers, 1 - centers).min(axis=1)
    for _ in range(rounds):
        for i in np.argsort(np.round(radii, 9), kind="stable"):
            distance = np.sqrt(((centers - centers[i]) ** 2).sum(axis=1)) - radii
            distance[i] = np.inf
            radii[i] = max(min(wall[i], distance.min()), 0.0)
    return radii
''',
    ),
    Idea(
        name="linear_radii",
        title="the best radii for these centres by a linear program",
        weight=0.06,
        fixed_ms=5.0,
        source='''
def linear_radii(centers):
    """Maximise the sum of radii for fixed centres."""
    i, j = np.triu_indices(len(centers), 1)
    distance = np.sqrt(((centers[i] - centers[j]) ** 2).sum(axis=1))
    pairs = np.zeros((len(i), len(centers)))
    pairs[np.arange(len(i)), i] = pairs[np.arange(len(i)), j] = 1
    wall = np.clip(np.minimum(centers, 1 - centers).min(axis=1), 0.0, None)
    found = linprog(
        -np.ones(len(centers)), A_ub=pairs, b_ub=distance, bounds=[(0, w) for w in wall]
    )
    return nearest(centers) if found.x is None else np.clip(found.x - 1e-9, 0.0, None)
''',
    ),
)

BANK = Bank(
    entries=("construct_packing", "run_packing"),
    title="26 circles in the unit square",
    variable="centers",
    count=26,
    wrapped="np.array({}[0], dtype=float)",
    ending="return centers, radii, float(np.sum(radii))",
    layouts=LAYOUTS,
    moves=MOVES,
    lasts=LASTS,
    helpers=HELPERS,
    operations={
        "copy": 0.06,
        "edit": 0.18,
        "tune": 0.24,
        "nudge": 0.16,
        "add": 0.1,
        "swap": 0.04,
        "drop": 0.03,
        "layout": 0.07,
        "last": 0.05,
        "restart": 0.05,
    },
    caution=0.9,
    most_moves=4,
    nudge_sizes=(0.06, 0.02, 0.007),
    spoils={
        "shape": (
            "centers, radii = centers[:-1], radii[:-1]",
            "centers = centers.T",
            "radii = radii[:, None] * np.ones(2)",
        ),
        "infeasible": (
            "radii = 1.05 * radii + 0.01",
            "centers = centers + 0.1",
            "radii = radii / (radii - radii)",
            "radii = radii - 0.2",
        ),
        "exception": (
            "radii = radii @ centers.T",
            "radii = fix_overlaps(centers, radii)",
            "radii[len(centers)] = 0.0",
        ),
    },
)
