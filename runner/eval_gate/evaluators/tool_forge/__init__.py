"""Assertions and rubrics of tool-forge."""
