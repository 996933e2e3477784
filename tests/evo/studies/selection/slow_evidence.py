"""What samples say, sample by sample, as the paper has it."""

import math


def slow_interval(x: list[float], alpha: float) -> tuple[float, float]:
    """Waudby-Smith & Ramdas, theorem 2, sample by sample: bets know the past alone."""
    low, high, bets, staked, paid = 0.0, 1.0, 0.0, 0.0, 0.0
    cost = math.log(2 / alpha)
    for t in range(1, len(x) + 1):
        means = [(0.5 + sum(x[:k])) / (k + 1) for k in range(t + 1)]
        deviations = [(x[k - 1] - means[k]) ** 2 for k in range(1, t)]
        variance = (0.25 + sum(deviations)) / t
        bet = min(0.75, math.sqrt(2 * cost / (variance * t * math.log(t + 1))))
        bets += bet
        staked += bet * x[t - 1]
        paid += (x[t - 1] - means[t - 1]) ** 2 * (-math.log(1 - bet) - bet)
        half = (cost + paid) / bets
        low, high = max(low, staked / bets - half), min(high, staked / bets + half)
    return low, high


def slow_evidence(difference: list[float], margin: float) -> float:
    """The same paper, section 4: capital by bets on the sign, each from the past alone."""
    won = most = 0.0
    past: list[float] = []
    for each in difference:
        d = each + margin
        if past:
            mean = sum(past) / (len(past) + 1)
            spread, total = 0.25, 0.0
            for k, value in enumerate(past, start=1):
                total += value
                spread += (value - total / (k + 1)) ** 2
            variance = spread / (len(past) + 1)
            won += math.log1p(min(0.75, max(0.0, mean / (variance + mean**2))) * d)
            most = max(most, won)
        past.append(d)
    return most
