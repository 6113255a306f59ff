"""The pull request story: plan, find the baseline, run, judge, publish, exit."""
