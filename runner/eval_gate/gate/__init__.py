"""Compares and decides. Pure: time, history and files come as arguments, but for `waivers`, which reads its file."""
