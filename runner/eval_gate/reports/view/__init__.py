"""View of a run: rows, tables and texts that all report formats share."""
