"""Processes of tests that are forked from one that has imported what they need.

There is one such process, whose imports are those that were stated last: so they stand here alone.
"""

from __future__ import annotations

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "evo.cli",
        "evo.cli.folders",
        "evo.cli.runs",
        "evo.cli.selections",
        "evo.cli.studies",
        "evo.gate.engines.arm",
        "evo.gate.server",
        "evo.runs.fork",
        "evo.runs.searcher",
        "evo.sandbox.cluster",
        "evo.studies.allocation.driver",
        "evo.studies.selection.driver",
        "evo.studies.sweep.driver",
        "joblib",
        "openai",
        "pytest",
    ]
)
