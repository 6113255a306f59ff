"""Targets: the systems under evaluation. Independent of cases, evaluators and reports."""
