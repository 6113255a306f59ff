"""`python -m runner` in a checkout: the same program as `eval-gate`. Not installed."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

    from eval_gate.cli.main import main

    main()
