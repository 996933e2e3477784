"""Logs: the records of a run, the checked append-only file that holds them, and its reader."""
