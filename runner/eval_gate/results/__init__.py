"""Stored results: writing, reading, archives, merging, and the history of a branch."""
