"""The reports of the Agent Evals command."""
