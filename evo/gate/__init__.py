"""The gate: an endpoint that counts, limits, caches and logs the calls of other tools."""
