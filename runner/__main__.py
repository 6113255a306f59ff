"""`python -m runner`: the same program as `eval-gate`."""

from runner.cli.main import main

if __name__ == "__main__":
    main()
