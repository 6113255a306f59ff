"""Trend of a branch over its runs: numbers, page and badge."""
