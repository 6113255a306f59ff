"""Names of the eval file dialects."""

from typing import Final

DIALECT_NAMES: Final = ("agentv", "tool-forge", "agent-evals")
"""Each has a folder of that name here, with `_` for `-`, whose `dialect` has a `DIALECT`.

Asked in this order; the first that recognises a document reads it.
"""
UPDATABLE_DIALECTS: Final = frozenset({"agentv", "tool-forge"})
"""Dialects whose cases `eval-gate draft --update` can change."""
