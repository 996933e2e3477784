"""Logs as tables: finds them, decodes them, and adds up what they cost."""
