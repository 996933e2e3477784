"""Policies as plain Python loops over one replicate: written from the papers, apart from ours.

Each takes the arms' trajectories (generation 0 first; a list that ends is an arm that closes), the
number of rounds, a `random.Random`, and gives the arms pulled. The reward is the fitness revealed.
"""

from __future__ import annotations

import math

SQRT2 = math.sqrt(2)


def _open(arms, depth):
    return [k for k in range(len(arms)) if depth[k] + 1 < len(arms[k])]


def random_choice(arms, rounds, rng):
    depth, pulls = [0] * len(arms), []
    for _ in range(rounds):
        choice = _open(arms, depth)
        if not choice:
            break
        k = choice[int(rng.random() * len(choice))]
        depth[k] += 1
        pulls.append(k)
    return pulls


def ucb1(arms, rounds, rng, c=SQRT2):
    K = len(arms)
    n, total, pulls = [0] * K, [0.0] * K, []
    for t in range(rounds):
        best, best_index = None, None
        for k in range(K):
            if n[k] + 1 >= len(arms[k]):
                continue
            if n[k] == 0:
                best = k
                break
            index = total[k] / n[k] + c * math.sqrt(math.log(t) / n[k])
            if best is None or index > best_index:
                best, best_index = k, index
        if best is None:
            break
        n[best] += 1
        total[best] += arms[best][n[best]]
        pulls.append(best)
    return pulls


def thompson(arms, rounds, rng, mean=0.5, std=0.1, noise=0.1):
    K = len(arms)
    n, total, pulls = [0] * K, [0.0] * K, []
    for _ in range(rounds):
        best, best_draw = None, -math.inf
        for k in range(K):
            if n[k] + 1 >= len(arms[k]):
                continue
            precision = 1 / std**2 + n[k] / noise**2
            centre = (mean / std**2 + total[k] / noise**2) / precision
            draw = rng.gauss(centre, math.sqrt(1 / precision))
            if draw > best_draw:
                best, best_draw = k, draw
        if best is None:
            break
        n[best] += 1
        total[best] += arms[best][n[best]]
        pulls.append(best)
    return pulls


def thompson_nig(arms, rounds, rng, mean=0.5, kappa=1.0, alpha=1.0, std=0.1):
    K = len(arms)
    rewards, pulls = [[] for _ in range(K)], []
    for _ in range(rounds):
        best, best_draw = None, -math.inf
        for k in _open(arms, [len(r) for r in rewards]):
            r, n = rewards[k], len(rewards[k])
            average = sum(r) / n if n else 0.0
            squares = sum((x - average) ** 2 for x in r)
            a = alpha + n / 2
            b = alpha * std**2 + squares / 2 + kappa * n * (average - mean) ** 2 / (2 * (kappa + n))
            centre = (kappa * mean + n * average) / (kappa + n)
            variance = 1 / rng.gammavariate(a, 1 / b)
            draw = rng.gauss(centre, math.sqrt(variance / (kappa + n)))
            if draw > best_draw:
                best, best_draw = k, draw
        if best is None:
            break
        rewards[best].append(arms[best][len(rewards[best]) + 1])
        pulls.append(best)
    return pulls


def epsilon_greedy(arms, rounds, rng, epsilon=0.1):
    K = len(arms)
    n, total, pulls = [0] * K, [0.0] * K, []
    for _ in range(rounds):
        choice = _open(arms, n)
        if not choice:
            break
        if rng.random() < epsilon:
            k = rng.choice(choice)
        else:
            k = max(choice, key=lambda j: (total[j] / n[j] if n[j] else math.inf, -j))
        n[k] += 1
        total[k] += arms[k][n[k]]
        pulls.append(k)
    return pulls


def _exponential(arms, rounds, rng, eta, mix, bonus, estimate):
    """Draw from (1 - mix) softmax(eta G) + mix / open; `estimate` is the gain of the arm drawn."""
    K = len(arms)
    depth, gains, pulls = [0] * K, [0.0] * K, []
    for _ in range(rounds):
        choice = [k for k in range(K) if depth[k] + 1 < len(arms[k])]
        if not choice:
            break
        top = max([gains[k] for k in choice])
        weight = [math.exp(eta * (gains[k] - top)) for k in choice]
        norm = sum(weight)
        p = [(1 - mix) * w / norm + mix / len(choice) for w in weight]
        u, i = rng.random(), 0
        while i < len(p) - 1 and u >= p[i]:
            u -= p[i]
            i += 1
        k = choice[i]
        depth[k] += 1
        if bonus:
            for j, mass in zip(choice, p, strict=True):
                gains[j] += bonus / mass
        gains[k] += estimate(arms[k][depth[k]], p[i])
        pulls.append(k)
    return pulls


def exp3p(arms, rounds, rng):
    K = len(arms)
    beta = math.sqrt(math.log(K) / (rounds * K))
    gamma = min(0.5, 1.05 * math.sqrt(K * math.log(K) / rounds))
    return _exponential(arms, rounds, rng, 0.95 * beta, gamma, beta, lambda g, p: g / p)


def exp3ix(arms, rounds, rng):
    K = len(arms)
    eta = math.sqrt(2 * math.log(K) / (K * rounds))
    return _exponential(arms, rounds, rng, eta, 0.0, 0.0, lambda g, p: -(1 - g) / (p + eta / 2))


def exp3_mixed(arms, rounds, rng):
    K = len(arms)
    gamma = min(0.5, math.sqrt(K * math.log(K) / ((math.e - 1) * rounds)))
    return _exponential(arms, rounds, rng, gamma / K, gamma, 0.0, lambda g, p: g / p)


def threshold_ascent(arms, rounds, rng, s=5, delta=0.01):
    """Streeter & Smith's index, with the threshold found by sorting all rewards."""
    a = math.log(2 * rounds * len(arms) / delta)

    def index(t, rewards, k):
        n = len(rewards[k])
        if n == 0:
            return math.inf
        ranked = sorted((x for r in rewards for x in r), reverse=True)
        threshold = ranked[s - 1] if len(ranked) >= s else -math.inf
        above = sum(x > threshold for x in rewards[k])
        return (above + a + math.sqrt(2.0 * a * above + a * a)) / n

    return _largest(arms, rounds, index)


def _largest(arms, rounds, index):
    """Pull the open arm with the largest index(round from 1, rewards by arm, arm)."""
    rewards, pulls = [[] for _ in arms], []
    for t in range(1, rounds + 1):
        choice = _open(arms, [len(r) for r in rewards])
        if not choice:
            break
        k = max(choice, key=lambda j: (index(t, rewards, j), -j))
        rewards[k].append(arms[k][len(rewards[k]) + 1])
        pulls.append(k)
    return pulls
