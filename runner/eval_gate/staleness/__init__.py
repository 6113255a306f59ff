"""Tool registry, and staleness of eval files against the tools they were written for."""
