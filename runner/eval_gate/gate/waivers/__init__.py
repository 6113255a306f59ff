"""Which failures are waived: the repository's file, comments, commands, and what of it is in force."""
