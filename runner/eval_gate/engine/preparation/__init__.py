"""Preparation of a run: everything that is read, selected and validated before the first request."""
