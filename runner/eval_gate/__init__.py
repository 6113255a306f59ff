"""Eval Gate: did this change break anything your agent could do yesterday, and can you believe the answer?"""

__version__ = "0.1.0"
