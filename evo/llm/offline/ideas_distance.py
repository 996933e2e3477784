"""What the offline model knows about 16 points with a large least-to-greatest distance."""

from __future__ import annotations

from evo.llm.offline.bank import NUDGE, SEED, Argument, Bank, Idea

HELPERS = {
    "ratio": '''
def ratio(points):
    """Return (least / greatest distance) squared."""
    delta = points[:, None] - points[None]
    squares = (delta * delta).sum(axis=2)
    greatest = squares.max()
    np.fill_diagonal(squares, np.inf)
    return squares.min() / greatest if greatest > 0 else 0.0
''',
    "nudge": NUDGE,
}

LAYOUTS = (
    Idea(
        name="cloud",
        title="a random cloud",
        weight=4.0,
        arguments={"seed": SEED},
        source='''
def cloud(seed):
    """Draw points at random in the unit square."""
    return np.random.default_rng(seed).random((16, 2))
''',
    ),
    Idea(
        name="circle",
        title="a circle",
        weight=2.0,
        arguments={"squash": Argument(0.5, 1.0)},
        source='''
def circle(squash):
    """Spread the points over an ellipse."""
    angle = 2 * np.pi * np.arange(16) / 16
    return np.column_stack([np.cos(angle), squash * np.sin(angle)])
''',
    ),
    Idea(
        name="spiral",
        title="a sunflower spiral",
        weight=1.0,
        arguments={"offset": Argument(0.2, 1.0), "turn": Argument(2.3, 2.5)},
        source='''
def spiral(offset, turn):
    """Place the points on a sunflower spiral."""
    k = np.arange(16)
    radius = np.sqrt(k + offset)
    return np.column_stack([radius * np.cos(turn * k), radius * np.sin(turn * k)])
''',
    ),
    Idea(
        name="rings",
        title="concentric rings",
        weight=0.5,
        arguments={"inner": Argument(0.25, 0.6), "twist": Argument(0.0, 0.6)},
        choices={"counts": ((1, 5, 10), (1, 6, 9), (4, 12), (5, 11), (2, 5, 9), (6, 10))},
        source='''
def rings(counts, inner, twist):
    """Place the points on rings; a single one goes to the middle."""
    rows = []
    for number, count in enumerate(counts):
        last = len(counts) - 1
        radius = 0.0 if count == 1 else 1.0 if number == last else inner
        angle = 2 * np.pi * np.arange(count) / count + twist * number
        rows.append(radius * np.column_stack([np.cos(angle), np.sin(angle)]))
    return np.concatenate(rows)
''',
    ),
    Idea(
        name="grid",
        title="a square grid",
        weight=0.2,
        arguments={"shear": Argument(-0.4, 0.4), "height": Argument(0.6, 1.2)},
        source='''
def grid(shear, height):
    """Place the points on a sheared 4 x 4 grid."""
    x, y = np.meshgrid(np.arange(4.0), np.arange(4.0))
    return np.column_stack([(x + shear * y).ravel(), height * y.ravel()])
''',
    ),
    Idea(
        name="staggered",
        title="staggered rows",
        weight=0.06,
        arguments={"gap": Argument(0.7, 1.1), "shift": Argument(-0.3, 0.3)},
        choices={"rows": ((4, 4, 4, 4), (3, 4, 5, 4), (5, 6, 5), (3, 5, 5, 3), (2, 4, 4, 4, 2))},
        source='''
def staggered(rows, gap, shift):
    """Place the points on rows that are centred and shifted against each other."""
    lines = []
    for number, count in enumerate(rows):
        x = np.arange(count) - (count - 1) / 2 + (number % 2) * shift
        lines.append(np.column_stack([x, np.full(count, gap * number)]))
    return np.concatenate(lines)
''',
    ),
)

MOVES = (
    Idea(
        name="jitter",
        title="a little noise",
        weight=3.0,
        arguments={"seed": SEED, "scale": Argument(0.01, 0.3)},
        source='''
def jitter(points, seed, scale):
    """Add noise."""
    return points + scale * np.random.default_rng(seed).standard_normal(points.shape)
''',
    ),
    Idea(
        name="stretch",
        title="another aspect ratio",
        weight=1.5,
        arguments={"factor": Argument(0.7, 1.4)},
        source='''
def stretch(points, factor):
    """Scale the second coordinate."""
    return points * np.array([1.0, factor])
''',
    ),
    Idea(
        name="repel",
        title="repulsion inside a disc",
        weight=0.25,
        arguments={"steps": Argument(5, 40, "whole"), "rate": Argument(0.01, 0.1)},
        ms_per={"steps": 0.035},
        source='''
def repel(points, steps, rate):
    """Let the points repel each other inside the unit disc."""
    points = points - points.mean(axis=0)
    points = points / max(np.sqrt((points**2).sum(axis=1)).max(), 1e-9)
    for _ in range(steps):
        delta = points[:, None] - points[None]
        squares = (delta * delta).sum(axis=2) + np.eye(len(points)) + 1e-3
        push = (delta / (squares * squares)[:, :, None]).sum(axis=1)
        points = points + rate * push / (1.0 + np.sqrt((push * push).sum(axis=1, keepdims=True)))
        radius = np.sqrt((points * points).sum(axis=1, keepdims=True))
        points = points / np.maximum(radius, 1.0)
    return points
''',
    ),
    Idea(
        name="climb",
        title="hill climbing",
        weight=0.5,
        arguments={
            "seed": SEED,
            "steps": Argument(20, 160, "whole"),
            "scale": Argument(0.01, 0.3),
        },
        ms_per={"steps": 0.03},
        source='''
def climb(points, seed, steps, scale):
    """Move one point at a time; keep what improves the ratio."""
    rng = np.random.default_rng(seed)
    points = points / max(np.ptp(points), 1e-9)
    best = ratio(points)
    for _ in range(steps):
        trial = points.copy()
        trial[rng.integers(len(points))] += scale * rng.standard_normal(2)
        value = ratio(trial)
        if value > best + 1e-9:
            points, best = trial, value
    return points
''',
    ),
    Idea(
        name="balance",
        title="pulling the farthest pair in and pushing the closest apart",
        weight=0.1,
        arguments={"steps": Argument(20, 150, "whole"), "rate": Argument(0.01, 0.2)},
        ms_per={"steps": 0.035},
        source='''
def balance(points, steps, rate):
    """Push the closest pair apart and pull the farthest pair together, ever more gently."""
    points = points / max(np.ptp(points), 1e-9)
    best, kept = ratio(points), points
    for step in range(steps):
        delta = points[:, None] - points[None]
        squares = (delta * delta).sum(axis=2)
        far = np.unravel_index(np.round(squares, 9).argmax(), squares.shape)
        np.fill_diagonal(squares, np.inf)
        near = np.unravel_index(np.round(squares, 9).argmin(), squares.shape)
        move = rate * (1 - step / steps)
        points = points.copy()
        for (i, j), sign in ((near, 1.0), (far, -1.0)):
            shift = 0.5 * sign * move * delta[i, j]
            points[i] += shift
            points[j] -= shift
        value = ratio(points)
        if value > best + 1e-9:
            best, kept = value, points
    return kept
''',
    ),
    Idea(
        name="anneal",
        title="simulated annealing",
        weight=0.1,
        arguments={
            "seed": SEED,
            "steps": Argument(50, 350, "whole"),
            "scale": Argument(0.02, 0.3),
            "heat": Argument(0.0005, 0.01),
        },
        ms_per={"steps": 0.032},
        source='''
def anneal(points, seed, steps, scale, heat):
    """Move one point at a time; accept losses less and less often."""
    rng = np.random.default_rng(seed)
    points = points / max(np.ptp(points), 1e-9)
    value = ratio(points)
    best, kept = value, points
    for step in range(steps):
        left = 1 - step / steps
        trial = points.copy()
        trial[rng.integers(len(points))] += scale * left * rng.standard_normal(2)
        new = ratio(trial)
        if new > value - heat * left * rng.random():
            points, value = trial, new
            if value > best + 1e-9:
                best, kept = value, points
    return kept
''',
    ),
    Idea(
        name="polish",
        title="a few steps of sequential quadratic programming",
        weight=0.02,
        arguments={"steps": Argument(1, 4, "whole")},
        fixed_ms=4.0,
        ms_per={"steps": 5.0},
        source='''
def polish(points, steps):
    """Shrink the greatest distance while every distance stays at least 1, by SLSQP."""
    count = len(points)
    i, j = np.triu_indices(count, 1)
    length = np.sqrt(((points[i] - points[j]) ** 2).sum(axis=1))
    points = points / max(length.min(), 1e-3)
    order = np.argsort(np.round(length, 9), kind="stable")
    i, j = np.append(i[order[:44]], i[order[-30:]]), np.append(j[order[:44]], j[order[-30:]])
    near = np.arange(74) < 44
    pair = np.arange(74)
    start = np.append(points.ravel(), length.max() ** 2 / max(length.min(), 1e-3) ** 2)

    def squares(x):
        p = x[:-1].reshape(count, 2)
        s = ((p[i] - p[j]) ** 2).sum(axis=1)
        return np.where(near, s - 1, x[-1] - s)

    def slopes(x):
        p = x[:-1].reshape(count, 2)
        d = 2 * (p[i] - p[j]) * np.where(near, 1, -1)[:, None]
        g = np.zeros((74, len(x)))
        for axis in range(2):
            g[pair, 2 * i + axis] = d[:, axis]
            g[pair, 2 * j + axis] = -d[:, axis]
        g[~near, -1] = 1
        return g

    target = np.zeros(len(start))
    target[-1] = 1
    found = minimize(
        lambda x: x[-1],
        start,
        jac=lambda x: target,
        method="SLSQP",
        constraints={"type": "ineq", "fun": squares, "jac": slopes},
        options={"maxiter": steps},
    )
    moved = found.x[:-1].reshape(count, 2)
    return moved if ratio(moved) > ratio(points) else points
''',
    ),
)

BANK = Bank(
    entries=("min_max_dist_dim2_16",),
    title="16 points in the plane",
    variable="points",
    count=16,
    wrapped="np.array({}, dtype=float)",
    ending="return points",
    layouts=LAYOUTS,
    moves=MOVES,
    lasts=(),
    helpers=HELPERS,
    operations={
        "copy": 0.06,
        "edit": 0.2,
        "tune": 0.3,
        "nudge": 0.1,
        "add": 0.14,
        "swap": 0.06,
        "drop": 0.03,
        "layout": 0.08,
        "restart": 0.06,
    },
    caution=0.75,
    most_moves=4,
    nudge_sizes=(0.3, 0.1, 0.03, 0.01),
    spoils={
        "shape": ("points = points[:-1]", "points = points.T", "points = points.ravel()"),
        "infeasible": (
            "points = points / (points - points)",
            "points = np.log(points - points.max())",
            "points[0] = np.nan",
        ),
        "exception": (
            "points = points @ np.ones((3, 3))",
            "points = rescale(points)",
            "points[len(points)] = points.mean(axis=0)",
        ),
    },
)
