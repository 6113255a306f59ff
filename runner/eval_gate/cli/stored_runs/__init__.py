"""Commands on stored runs and external results: decide, compare, merge, view, report."""
