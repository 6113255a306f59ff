"""What every way to start the gate does: prepare, run, judge, keep."""
