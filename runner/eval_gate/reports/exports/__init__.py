"""A run for other programs: test readers, other eval tools, and our own `judge`."""
