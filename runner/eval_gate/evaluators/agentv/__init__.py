"""Evaluators of AgentV."""
