"""Sandboxed folder for one agent's file tools."""
