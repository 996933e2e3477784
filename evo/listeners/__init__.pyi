"""Listeners, each loaded where it is first used."""

from .lines import JSONLines as JSONLines
from .mlflow import MLflow as MLflow
from .wandb import WandB as WandB
