"""The summary on a terminal."""
