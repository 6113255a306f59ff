"""Exports of a run for other programs, one module per format."""
