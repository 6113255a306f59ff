"""One short module per command: its options, and what it calls."""
