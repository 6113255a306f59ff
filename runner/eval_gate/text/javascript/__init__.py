"""Strings and regular expressions with the semantics of ECMAScript."""
