"""Sweeps: which configuration is best, over a space of them, on paired seeds.

A sweep is a folder: `sweep.json` holds the design, `events.jsonl` what happened, `runs/` holds
the logs. What is not in there is not known: a killed sweep and one gone on with are the same thing.
`evo.sweep` runs one, `replay.load_sweep` reads one.
"""
