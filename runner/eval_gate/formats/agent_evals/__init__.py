"""Agent Evals suites."""
