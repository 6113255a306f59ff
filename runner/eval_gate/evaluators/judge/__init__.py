"""Asking a model for its judgement: the question, and what can be read in the reply."""
