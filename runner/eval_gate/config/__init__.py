"""The configuration of a run: what there is to set, and how file, variables and flags become it."""
