"""The folders that agents of suites work in: which cases share one, and what a failing one leaves."""
