"""Install a lock file: exactly the packages that it lists, and nothing that an installer would resolve beside them.

    python requirements/install.py requirements/dev.txt
    python requirements/install.py --python /opt/gate/bin/python requirements/http.txt --only-binary :all:

Everything in this repository that installs a lock calls this script: the Makefile, the image, the action without
Docker, workflows, benchmarks and tests. `--no-deps` makes a lock last. Without it, an older pip looks up
`google-auth[requests]` in the index although the lock pins `google-auth`, finds a newer release, and refuses it because
the lock has no hash for it (https://github.com/pypa/pip/issues/9644). `pip check` then confirms that the lock is
complete. The script needs only the standard library.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Install the lock, check the environment, and return the exit code of the first command that failed, else 0."""
    parser = argparse.ArgumentParser(
        description="Install exactly the packages of a lock file, and check that it is complete.",
    )
    parser.add_argument("--python", metavar="FILE", help="interpreter to install for (default: the one running this)")
    parser.add_argument(
        "--no-check", action="store_true", help="skip `pip check`, for a lock that leaves out a package on purpose"
    )
    parser.add_argument("lock", type=Path, help="requirements file with a version and hashes for every package")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of `pip install`")
    chosen = parser.parse_args()
    # -I: the working directory and PYTHONPATH do not change which pip runs
    pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check"]
    if chosen.python:
        pip += ["--python", chosen.python]
    commands = [[*pip, "install", "--quiet", "--no-deps", "--require-hashes", *chosen.options, "-r", str(chosen.lock)]]
    if not chosen.no_check:
        commands.append([*pip, "check"])
    for command in commands:
        # shown only when it fails: `pip check` prints a line when all is well
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(done.stdout, end="", file=sys.stderr)
            print(f"{chosen.lock} could not be installed: {' '.join(command)}", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
