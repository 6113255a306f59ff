"""Evaluators for tool-forge."""
