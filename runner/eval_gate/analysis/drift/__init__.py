"""Whether the default branch itself has become worse over its runs, since when, and by how much."""
