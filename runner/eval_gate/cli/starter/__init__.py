"""What `eval-gate init` writes into a repository, and how: looked at first, decided, then written as a whole."""
