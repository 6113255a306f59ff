"""Assertions of Agent Evals suites."""
