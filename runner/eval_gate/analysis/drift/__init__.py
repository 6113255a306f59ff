"""Drift: whether the default branch degraded over its runs, since when, and by how much."""
