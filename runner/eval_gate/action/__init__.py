"""GitHub Action: plan, find the baseline, run, decide, publish, exit."""
