"""Listeners: what is informed of the events of runs and sweeps, `listeners=[...]` of every verb.

A listener is any function of one event. These are small classes over the real libraries.

- `WandB(project)`: a run of Weights & Biases with parameters, fitness, cost and the best program
- `MLflow(experiment)`: the same as a run of MLflow
- `JSONLines(path)`: a line of JSON for each event
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
