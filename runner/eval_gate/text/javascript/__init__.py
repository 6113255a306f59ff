"""Strings and patterns as ECMAScript has them."""
