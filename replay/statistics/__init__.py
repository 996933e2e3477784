"""Statistics of arrays: intervals and resampling."""
