"""Wording of the reports: sentences and number formats, independent of view and format."""
