"""Suites of Agent Evals."""
