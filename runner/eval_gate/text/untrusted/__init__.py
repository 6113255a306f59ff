"""Reading of untrusted bytes as text and JSON, within limits of size and depth."""
