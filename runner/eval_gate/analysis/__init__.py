"""What stored runs and their history say: whether the branch got worse, and how judges agree with people."""
