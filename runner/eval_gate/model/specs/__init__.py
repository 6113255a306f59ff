"""Specifications of evaluators: one class for each kind, in a separate module if only one format has it."""
