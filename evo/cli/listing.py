"""Commands that list what there is."""

from __future__ import annotations

from evo.cli.tables import number, table


def tasks() -> int:
    """Lists the tasks: those that are shipped, and names of those that packages add."""
    from evo.plugins import plugged_in
    from evo.tasks.task import load_task, names_of_shipped_tasks, shipped_tasks

    rows = []
    for name, config in shipped_tasks().items():
        seconds = load_task(name).limits.seconds
        rows.append((name, ", ".join(config.aliases), f"{seconds:g}", config.title))
    print(table(rows, ("task", "aliases", "seconds", "what it asks")))
    if added := plugged_in("evo.tasks", taken=names_of_shipped_tasks()):
        print(f"Installed packages add {', '.join(added)}.")
    print("A folder with initial_program.py and evaluator.py is a task, too.")
    return 0


def models() -> int:
    """Lists the known models."""
    from evo.models.prices import with_prices
    from evo.models.registry import load_models

    rows = [
        (
            model.name,
            number(model.active_parameters, ",d"),
            number(model.context, ",d"),
            number(model.input_price),
            number(model.output_price),
            "" if model.is_llm else "not an LLM",
        )
        for model in map(with_prices, load_models().values())
    ]
    heads = ("model", "active parameters", "context", "$/M in", "$/M out", "")
    print(table(rows, heads))
    return 0
