"""Configuration of a run: the settings table, and how file, variables and flags become one."""
