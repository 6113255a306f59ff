"""Run untrusted programs in process groups, with limits of time and output."""
