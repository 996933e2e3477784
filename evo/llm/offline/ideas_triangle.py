"""What the offline model knows about 11 points in a triangle without small triangles."""

from __future__ import annotations

from evo.llm.offline.bank import NUDGE, SEED, Argument, Bank, Idea

HELPERS = {
    "CORNERS": """
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
""",
    "TRIPLES": """
TRIPLES = np.array(list(combinations(range(11), 3))).T
""",
    "areas": '''
def areas(points):
    """Return twice the signed area of every triangle of three points."""
    a, b, c = points[TRIPLES]
    u, v = b - a, c - a
    return u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
''',
    "inside": '''
def inside(points):
    """Bring points back into the triangle: clip their barycentric coordinates."""
    y = points[:, 1] / CORNERS[2, 1]
    weights = np.column_stack([1 - points[:, 0] - y / 2, points[:, 0] - y / 2, y])
    weights = np.clip(weights, 0.0, None)
    return (weights / weights.sum(axis=1, keepdims=True)) @ CORNERS
''',
    "nudge": NUDGE.replace("return points", "return inside(points)"),
}

LAYOUTS = (
    Idea(
        name="scatter",
        title="random points",
        weight=3.0,
        arguments={"seed": SEED},
        source='''
def scatter(seed):
    """Draw points uniformly in the triangle."""
    return np.random.default_rng(seed).dirichlet(np.ones(3), 11) @ CORNERS
''',
    ),
    Idea(
        name="lattice",
        title="a triangular lattice",
        weight=2.0,
        arguments={"bend": Argument(-0.3, 0.3)},
        source='''
def lattice(bend):
    """Bend a triangular lattice so that no three points are in line."""
    rows = [(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)][:11]
    weights = np.array(rows) / 4.0
    weights = weights + bend * weights**2 * np.array([1.0, -0.5, 0.7])
    return inside(weights @ CORNERS)
''',
    ),
    Idea(
        name="sunflower",
        title="a sunflower spiral around the centre",
        weight=1.5,
        arguments={
            "turn": Argument(2.2, 2.6),
            "start": Argument(0.0, 2.0),
            "reach": Argument(0.3, 0.7),
        },
        source='''
def sunflower(turn, start, reach):
    """Place points on a spiral around the centre of the triangle."""
    k = np.arange(11)
    radius = reach * np.sqrt((k + 0.5) / 11)
    spiral = np.column_stack([np.cos(start + turn * k), np.sin(start + turn * k)])
    return inside(CORNERS.mean(axis=0) + radius[:, None] * spiral)
''',
    ),
    Idea(
        name="border",
        title="points along the sides",
        weight=1.0,
        arguments={
            "first": Argument(0.0, 0.45),
            "second": Argument(0.5, 0.95),
            "depth": Argument(0.05, 0.3),
            "seed": SEED,
        },
        source='''
def border(first, second, depth, seed):
    """Put points near the three sides and a few inside."""
    rows = []
    for k in range(3):
        a, b, c = np.roll(CORNERS, -k, axis=0)
        rows.append(a + first * (b - a))
        rows.append(a + second * (b - a))
        rows.append((1 - depth) * (a + b) / 2 + depth * c)
    extra = np.random.default_rng(seed).dirichlet(np.ones(3), 2) @ CORNERS
    return np.concatenate([np.array(rows), extra])
''',
    ),
    Idea(
        name="lottery",
        title="the best of several random draws",
        weight=0.6,
        arguments={"seed": SEED, "tries": Argument(10, 150, "whole")},
        ms_per={"tries": 0.035},
        source='''
def lottery(seed, tries):
    """Draw random points several times; keep the draw with the largest least area."""
    rng = np.random.default_rng(seed)
    draws = [rng.dirichlet(np.ones(3), 11) @ CORNERS for _ in range(tries)]
    return max(draws, key=lambda points: np.abs(areas(points)).min())
''',
    ),
    Idea(
        name="mirrored",
        title="a layout with a mirror axis",
        weight=0.35,
        arguments={"seed": SEED, "tries": Argument(10, 120, "whole")},
        ms_per={"tries": 0.05},
        source='''
def mirrored(seed, tries):
    """Draw one half at random and mirror it; keep the best of several draws."""
    rng = np.random.default_rng(seed)
    best, kept = -1.0, None
    for _ in range(tries):
        half = rng.dirichlet(np.ones(3), 5) @ CORNERS
        axis = np.array([[0.5, rng.random() * CORNERS[2, 1]]])
        points = np.concatenate([half, half * [-1, 1] + [1, 0], axis])
        value = np.abs(areas(points)).min()
        if value > best + 1e-9:
            best, kept = value, points
    return kept
''',
    ),
)

MOVES = (
    Idea(
        name="jitter",
        title="a little noise",
        weight=3.0,
        arguments={"seed": SEED, "scale": Argument(0.003, 0.15)},
        source='''
def jitter(points, seed, scale):
    """Add noise and stay inside."""
    noise = np.random.default_rng(seed).standard_normal(points.shape)
    return inside(points + scale * noise)
''',
    ),
    Idea(
        name="spread",
        title="scaling around the centre",
        weight=1.5,
        arguments={"factor": Argument(0.8, 1.4)},
        source='''
def spread(points, factor):
    """Scale the points around the centre of the triangle."""
    centre = CORNERS.mean(axis=0)
    return inside(centre + factor * (points - centre))
''',
    ),
    Idea(
        name="widen",
        title="widening the thinnest triangle",
        weight=0.7,
        arguments={"steps": Argument(5, 80, "whole"), "rate": Argument(0.002, 0.05)},
        ms_per={"steps": 0.06},
        source='''
def widen(points, steps, rate):
    """Move one corner of the thinnest triangle away from the other two, again and again."""
    best, kept = np.abs(areas(points)).min(), points
    for step in range(steps):
        signed = areas(points)
        thin = np.round(np.abs(signed), 9).argmin()
        i, j, k = np.roll(TRIPLES[:, thin], step)
        side = points[k] - points[j]
        normal = np.array([-side[1], side[0]]) / (np.hypot(*side) + 1e-9)
        way = 1.0 if (points[i] - points[j]) @ normal >= 0 else -1.0
        points = points.copy()
        points[i] += rate * way * normal
        points = inside(points)
        value = np.abs(areas(points)).min()
        if value > best + 1e-9:
            best, kept = value, points
    return kept
''',
    ),
    Idea(
        name="climb",
        title="hill climbing",
        weight=0.35,
        arguments={
            "seed": SEED,
            "steps": Argument(10, 120, "whole"),
            "scale": Argument(0.005, 0.2),
        },
        ms_per={"steps": 0.05},
        source='''
def climb(points, seed, steps, scale):
    """Move one point at a time; keep what enlarges the least area."""
    rng = np.random.default_rng(seed)
    best = np.abs(areas(points)).min()
    for _ in range(steps):
        trial = points.copy()
        trial[rng.integers(len(points))] += scale * rng.standard_normal(2)
        trial = inside(trial)
        value = np.abs(areas(trial)).min()
        if value > best + 1e-9:
            points, best = trial, value
    return points
''',
    ),
    Idea(
        name="anneal",
        title="simulated annealing",
        weight=0.1,
        arguments={
            "seed": SEED,
            "steps": Argument(50, 300, "whole"),
            "scale": Argument(0.01, 0.3),
            "heat": Argument(0.001, 0.02),
        },
        ms_per={"steps": 0.052},
        source='''
def anneal(points, seed, steps, scale, heat):
    """Move one point at a time; accept losses less and less often."""
    rng = np.random.default_rng(seed)
    value = np.abs(areas(points)).min()
    best, kept = value, points
    for step in range(steps):
        left = 1 - step / steps
        trial = points.copy()
        trial[rng.integers(len(points))] += scale * left * rng.standard_normal(2)
        trial = inside(trial)
        new = np.abs(areas(trial)).min()
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
        weight=0.03,
        arguments={"steps": Argument(2, 8, "whole")},
        fixed_ms=3.0,
        ms_per={"steps": 2.5},
        source='''
def polish(points, steps):
    """Enlarge the least area with the orientation of every triangle kept, by SLSQP."""
    signed = areas(points)
    thin = np.argsort(np.round(np.abs(signed), 9), kind="stable")[:45]
    sign = np.where(signed >= 0, 1.0, -1.0)[thin]
    i, j, k = TRIPLES[:, thin]
    row = np.arange(len(i))
    slope = CORNERS[2, 1] / 0.5

    def room(x):
        p = x[:-1].reshape(11, 2)
        walls = [p[:, 1], slope * p[:, 0] - p[:, 1], slope * (1 - p[:, 0]) - p[:, 1]]
        return np.concatenate([sign * areas(p)[thin] - x[-1], *walls])

    def slopes(x):
        p = x[:-1].reshape(11, 2)
        g = np.zeros((len(i) + 33, 23))
        for a, b, c in ((i, j, k), (j, k, i), (k, i, j)):
            g[row, 2 * a] += sign * (p[b, 1] - p[c, 1])
            g[row, 2 * a + 1] += sign * (p[c, 0] - p[b, 0])
        g[: len(i), -1] = -1
        n = np.arange(11)
        g[len(i) + n, 2 * n + 1] = 1
        for wall, way in ((1, slope), (2, -slope)):
            g[len(i) + 11 * wall + n, 2 * n] = way
            g[len(i) + 11 * wall + n, 2 * n + 1] = -1
        return g

    target = np.zeros(23)
    target[-1] = -1
    found = minimize(
        lambda x: -x[-1],
        np.append(points.ravel(), np.abs(areas(points)).min()),
        jac=lambda x: target,
        method="SLSQP",
        constraints={"type": "ineq", "fun": room, "jac": slopes},
        options={"maxiter": steps},
    )
    moved = inside(found.x[:-1].reshape(11, 2))
    return moved if np.abs(areas(moved)).min() > np.abs(areas(points)).min() else points
''',
    ),
)

BANK = Bank(
    entries=("heilbronn_triangle11",),
    title="11 points in the triangle (0, 0), (1, 0), (1/2, sqrt(3)/2)",
    variable="points",
    count=11,
    wrapped="np.array({}, dtype=float)",
    ending="return points",
    layouts=LAYOUTS,
    moves=MOVES,
    lasts=(),
    helpers=HELPERS,
    operations={
        "copy": 0.06,
        "edit": 0.2,
        "tune": 0.25,
        "nudge": 0.06,
        "add": 0.1,
        "swap": 0.08,
        "drop": 0.03,
        "layout": 0.12,
        "restart": 0.12,
    },
    caution=0.5,
    most_moves=4,
    nudge_sizes=(0.1, 0.03, 0.01),
    spoils={
        "shape": ("points = points[:-1]", "points = np.append(points, points[:1], axis=0)"),
        "infeasible": (
            "points = points + np.array([0.5, 0.0])",
            "points = 1.3 * points",
            "points = points / (points[:1] - points[:1])",
        ),
        "exception": (
            "points = points @ np.ones((3, 3))",
            "points = project(points)",
            "points[len(points)] = points.mean(axis=0)",
        ),
    },
)
