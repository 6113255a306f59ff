"""Commands that run evals: a run, several targets, the demo, the action, Agent Evals."""
