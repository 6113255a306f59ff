"""The command line: one short module per command. Only this room reads the environment and writes to stdout."""
