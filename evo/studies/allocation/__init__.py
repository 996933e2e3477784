"""Allocations: a policy chooses which run advances by one generation."""
