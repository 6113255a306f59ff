"""A run as rows, tables and words, made once. Every report only places what is here."""
