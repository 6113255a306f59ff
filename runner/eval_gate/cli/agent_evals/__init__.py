"""What `eval-gate agent-evals` does."""
