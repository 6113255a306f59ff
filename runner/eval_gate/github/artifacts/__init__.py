"""Artifacts of workflow runs: found, downloaded, uploaded, and the baseline among them."""
