"""Compare a run with its baseline and decide the verdict. Pure, except for two files read here."""
