"""Compares and decides. Pure: time, history and files come as arguments, but for two files that are read here."""
