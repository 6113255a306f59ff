"""Eval files become suites. One module per format; nothing outside this room knows a format."""
