"""Importer for promptfoo configurations (read from 0.121)."""
