"""Artifacts of workflow runs: search, download, upload, and the baseline among them."""
