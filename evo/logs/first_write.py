"""Whether this process has written anything yet; imports next to nothing."""

from __future__ import annotations

import threading

WRITTEN = threading.Event()
"""Set once this process has begun a file of lines or claimed one."""
