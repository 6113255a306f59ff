"""Tool definitions from wherever they live, and whether evals are older than what they speak about."""
