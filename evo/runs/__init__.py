"""Runs: advanced by generations, brought to goals by sessions, played again."""
