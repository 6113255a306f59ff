"""The run result as JSON: writing, dropping details, parsing."""
