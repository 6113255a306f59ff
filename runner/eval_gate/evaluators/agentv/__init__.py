"""Evaluators for AgentV."""
