"""Weights & Biases: a run of its own for each run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evo.listeners.tracking import Tracker


class WandB(Tracker[Any]):
    """Logs runs to Weights & Biases: parameters, fitness and cost by generation, the best program.

    Needs `pip install evo-replay[wandb]`.

    Args:
        project: Name of the project.
        **options: Passed on to `wandb.init`, such as `entity`, `mode="offline"` or `dir`.

    Example:
        >>> evo.run("mmd", listeners=[evo.listeners.WandB("packing")])  # doctest: +SKIP
    """

    def __init__(self, project: str = "evo", **options: Any) -> None:
        super().__init__()
        self._project, self._options = project, options

    def begin(self, name: str, group: str, parameters: Mapping[str, object]) -> Any:
        """Begins a run beside those that are open."""
        import wandb

        given = {"group": group, **self._options}
        return wandb.init(
            project=self._project, name=name, config=dict(parameters), reinit="create_new", **given
        )

    def measure(self, run: Any, numbers: Mapping[str, float], step: int) -> None:
        """Logs figures of a generation."""
        run.log(dict(numbers), step=step)

    def finish(
        self, run: Any, numbers: Mapping[str, float], program: Path | str | None, failed: bool
    ) -> None:
        """Logs the last figures as the summary and the best program, and ends the run."""
        import wandb

        run.summary.update(dict(numbers))
        if program is not None:
            artifact = wandb.Artifact(f"best-program-{run.id}", type="program")
            with artifact.new_file("best_program.txt") as file:
                file.write(str(program))
            run.log_artifact(artifact)
        run.finish(exit_code=int(failed))
