"""Everything that is read, chosen and checked before a run asks anything."""
