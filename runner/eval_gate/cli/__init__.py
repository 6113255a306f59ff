"""The command line. Only this package reads the environment and writes to stdout.

A module that is called as its command is what `--help` loads; what does the work is imported when it is called.
"""
