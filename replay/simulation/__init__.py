"""Policies replayed over logged runs, and how far they differ."""
