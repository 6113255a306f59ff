"""`python -m eval_gate`: the same program as `eval-gate`."""

from eval_gate.cli.main import main

if __name__ == "__main__":
    main()
