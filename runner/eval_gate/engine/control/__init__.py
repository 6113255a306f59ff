"""Asking the base branch's agent beside a run."""
