"""Read observations from logs, traces, results of other tools and a recording proxy."""
