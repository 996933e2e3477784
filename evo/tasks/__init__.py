"""Tasks: from a folder, or from a log, to what a search needs; `shipped/` holds our own."""
