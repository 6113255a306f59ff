"""The dialects of eval files there are, by the names that suites have as their format."""

from typing import Final

DIALECTS: Final = ("agentv", "tool-forge", "agent-evals")
"""Each has a folder of that name here, with `_` for `-`, whose `format` has a `DIALECT`.

Asked in this order; the first that recognises a document reads it.
"""
