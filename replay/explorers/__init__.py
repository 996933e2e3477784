"""Explorers: figures with sliders in Jupyter, each also a plain function that returns a figure."""

from __future__ import annotations

from replay.explorers.budget import budget_figure, explore_budget

__all__ = ["budget_figure", "explore_budget"]
