"""A run as numbers and rows, made once. Every report only places what is here."""
