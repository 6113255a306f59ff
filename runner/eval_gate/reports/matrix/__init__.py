"""The same cases asked of several targets, side by side."""
