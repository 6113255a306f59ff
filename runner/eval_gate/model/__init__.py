"""The data every room speaks about: frozen, without I/O, clock or environment."""
