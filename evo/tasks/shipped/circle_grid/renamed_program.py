def make(n):
    """Return n triples (a, b, c)."""
    p, q, c = 0.1, 0.15, 0.03
    triples = []
    for i in range(n):
        a = p + q * (i % 6)
        b = p + q * (i // 6)
        triples.append((a, b, c))
    return triples
