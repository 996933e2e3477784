"""MLflow: a run of its own for each run, by its client, which keeps no state of the process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evo.listeners.tracking import Tracker

_MOST_PARAMETER = 500  # characters that every store of MLflow takes


class MLflow(Tracker[str]):
    """Logs runs to MLflow: parameters, fitness and cost by generation, the best program.

    Needs `pip install evo-replay[mlflow]`.

    Args:
        experiment: Name of the experiment, which is made unless it exists.
        tracking_uri: Where MLflow keeps its runs (default: where the environment says).
        tags: Further tags of each run.

    Example:
        >>> evo.run("mmd", listeners=[evo.listeners.MLflow("packing")])  # doctest: +SKIP
    """

    def __init__(
        self,
        experiment: str = "evo",
        *,
        tracking_uri: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._experiment, self._uri, self._tags = experiment, tracking_uri, dict(tags or {})
        self._known: tuple[Any, str] | None = None

    def begin(self, name: str, group: str, parameters: Mapping[str, object]) -> str:
        """Begins a run and returns its id."""
        client, experiment = self._client()
        tags = {"mlflow.runName": name, "task": group, **self._tags}
        run: str = client.create_run(experiment, tags=tags).info.run_id
        for key, value in parameters.items():
            client.log_param(run, key, str(value)[:_MOST_PARAMETER])
        return run

    def measure(self, run: str, numbers: Mapping[str, float], step: int) -> None:
        """Logs metrics of a generation."""
        client, _ = self._client()
        for name, value in numbers.items():
            client.log_metric(run, name, value, step=step)

    def finish(
        self, run: str, numbers: Mapping[str, float], program: Path | str | None, failed: bool
    ) -> None:
        """Logs the last figures and the best program, and ends the run."""
        client, _ = self._client()
        for name, value in numbers.items():
            if name.startswith("share/"):
                client.log_metric(run, name, value)
        if program is not None:
            client.log_text(run, str(program), "best_program.txt")
        client.set_terminated(run, "FAILED" if failed else "FINISHED")

    def _client(self) -> tuple[Any, str]:
        """Returns MLflow's client and the id of the experiment, made at the first event."""
        if self._known is None:
            from mlflow import MlflowClient

            client = MlflowClient(tracking_uri=self._uri)
            found = client.get_experiment_by_name(self._experiment)
            number = found.experiment_id if found else client.create_experiment(self._experiment)
            self._known = client, str(number)
        return self._known
