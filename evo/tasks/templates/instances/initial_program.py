"""The program to start from. `solve` is called with the `input` of each row of instances.jsonl."""


def solve(problem):
    """Return the positions of the items to pack: those that still fit, from first to last."""
    packed, free = [], problem["capacity"]
    for position, (weight, _) in enumerate(problem["items"]):
        if weight <= free:
            packed.append(position)
            free -= weight
    return packed
