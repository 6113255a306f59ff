"""Definitions of other tools' evals as eval files of ours, with a list of what could not be carried over."""
