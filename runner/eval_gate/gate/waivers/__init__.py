"""Waivers: the waiver file, waive commands in comments, and which failures they waive."""
