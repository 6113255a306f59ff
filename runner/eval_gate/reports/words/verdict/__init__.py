"""The words for a verdict."""
