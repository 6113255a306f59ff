"""Compares and decides. Pure: time, history and files come as arguments, but for `stored`, which reads results."""
