"""Studies: many runs under one budget, in one folder: allocations, sweeps and selections."""
