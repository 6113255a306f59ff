"""The command line. Only this package reads the environment and writes to stdout.

`--help` loads only the modules named after commands; they import the modules that do the work when they are called.
"""
