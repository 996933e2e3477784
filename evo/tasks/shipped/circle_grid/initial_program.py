def pack(n):
    """Return n circles in the unit square, each (x, y, radius)."""
    margin, spacing, radius = 0.1, 0.15, 0.03
    circles = []
    for i in range(n):
        x = margin + spacing * (i % 6)
        y = margin + spacing * (i // 6)
        circles.append((x, y, radius))
    return circles
