"""Writing files: the one way by which something is left on disk, and where it may be left."""
