"""Data model that all packages share: immutable data without I/O, clock or environment."""
