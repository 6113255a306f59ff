"""Waivers in comments of a pull request: who may write them, and what the base branch knows."""
