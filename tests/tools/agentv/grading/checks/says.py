"""Prints its second argument and ends with its first."""

import sys

print(sys.argv[2])
sys.exit(int(sys.argv[1]))
