"""The page of a run: one file that holds everything, for judging a regression without anything else at hand."""
