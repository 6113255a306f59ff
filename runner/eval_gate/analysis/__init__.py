"""Analysis of stored runs and history: drift of the branch, agreement of judges with people."""
