"""Check the subjects of new commits: `make lint` runs it.

A subject is imperative, has at most 72 characters and no full stop at its end; an area may stand before it
(`http: use one client for all targets`). Commits before this rule are left as they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LIMIT = 72
BEFORE_THE_RULE = "2345f16adb61c5cb5bba73825929369bec954018"
"""The newest commit that need not keep the rule."""
AREA = re.compile(r"^[\w./-]+(?:, [\w./-]+)*: ")
WRITTEN_BY_GIT = re.compile(r"^(Merge |Revert \")")
NOT_A_VERB = re.compile(
    r"(an?|the|this|that|these|those|what|who|which|when|where|why|how|if|no|not|nobody|nothing|only|every|each|all|any"
    r"|it|its|they|we|you|there|here|of|in|on|at|for|from|to|with|without|and|or|but|as|by)$",
    re.IGNORECASE,
)
ANOTHER_FORM = re.compile(r".{2,}(ing|ed|[^s']s)$", re.IGNORECASE)
IMPERATIVE = {"bring", "embed", "feed", "focus", "need", "ping", "seed", "shed", "speed", "bias", "spring", "swing"}
"""Imperatives that end like another form of a verb."""


def find_problem(subject: str) -> str | None:
    """Return what is wrong with a commit's subject, or None."""
    if WRITTEN_BY_GIT.match(subject):
        return None
    if len(subject) > LIMIT:
        return f"{len(subject)} characters, at most {LIMIT} are allowed"
    if subject.endswith("."):
        return "ends with a full stop"
    words = AREA.sub("", subject).split()
    first = words[0] if words else ""
    if not re.match(r"[A-Za-z]", first):
        return "does not begin with a verb"
    if NOT_A_VERB.match(first) or (first.lower() not in IMPERATIVE and ANOTHER_FORM.match(first)):
        return f"'{first}' is not an imperative, such as 'Add' or 'Fix'"
    return None


def run_git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git there, and leave it to the caller what a failure means."""
    # in a container the checkout may belong to another user
    command = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def list_new_subjects(folder: Path, base: str) -> list[tuple[str, str]]:
    """Return hash and subject of each commit since `base`; of the newest only, where a clone is too shallow."""
    reaches = run_git(folder, "merge-base", "--is-ancestor", base, "HEAD").returncode == 0
    chosen = [f"{base}..HEAD"] if reaches else ["-1", "HEAD"]
    lines = run_git(folder, "log", "--no-merges", "--format=%h %s", *chosen).stdout.splitlines()
    return [(name, subject) for name, _, subject in (line.partition(" ") for line in lines)]


def main(folder: Path, base: str = BEFORE_THE_RULE) -> int:
    """Print each subject that breaks the rule, and return the exit code. A source archive has no commits and passes."""
    found = [(name, subject, find_problem(subject)) for name, subject in list_new_subjects(folder, base)]
    wrong = [f"{name} {subject}\n    {reason}" for name, subject, reason in found if reason]
    if wrong:
        print("commit subjects:", *wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[2]))
