"""Eval file formats: one package per dialect; no other package knows a file format."""
