"""Engines: other tools that evolve programs, each started behind the gate."""
