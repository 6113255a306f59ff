"""Cut gitleaks' rules down to those that know a key by its own form, in the notation of Python.

Usage, with a checkout of <https://github.com/gitleaks/gitleaks> (MIT licence):

    python -m tests.support.cut_key_rules path/to/gitleaks

It writes `key_rules.json` and `key_rules.LICENSE` in `runner/eval_gate/text/`. Nothing in them is written by hand.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[2] / "runner/eval_gate/text"

ASSIGNMENT = "(?:=|>|:{1,3}="
"""What stands in a rule that knows a value by the name it is assigned to: any word could be such a value."""
END = r"""(?:[\x60'"\s;]|\\[nr]|$"""
"""What source code has behind a key. In prose that may be any sign of punctuation."""
PLAIN_END = r"(?![0-9A-Za-z_])"
LEFT_OUT = {
    "curl-auth-header": "a command line, whatever its value is",
    "curl-auth-user": "a command line, whatever its value is",
    "facebook-access-token": "no prefix: digits, a bar and a word, in a text with the name",
    "flutterwave-public-key": "public",
    "maxmind-license-key": "an ending instead of a prefix: each word of a text would be tried",
    "sourcegraph-access-token": "any commit, in a text with the name",
    "vault-service-token": "`s.` and a word of 24 letters and digits",
}
"""Rules without an own form of a key, each with the reason."""


def main(checkout: Path) -> None:
    """Write the rules and their licence."""
    commit = _run_git(checkout, "rev-parse", "HEAD").strip()
    given = tomllib.loads(_run_git(checkout, "show", "HEAD:config/gitleaks.toml"))["rules"]
    unknown = LEFT_OUT.keys() - {rule["id"] for rule in given}
    if unknown:
        raise SystemExit(f"there are no such rules any more: {', '.join(sorted(unknown))}")
    rules = [cut for rule in given if rule["id"] not in LEFT_OUT and (cut := cut_rule(rule))]
    lines = ",\n".join(json.dumps(rule) for rule in rules)
    source = f"https://github.com/gitleaks/gitleaks, {commit}, cut by tests/support/cut_key_rules.py"
    (OUT / "key_rules.json").write_text(f'{{"source": {json.dumps(source)}, "rules": [\n{lines}\n]}}\n')
    (OUT / "key_rules.LICENSE").write_text(_run_git(checkout, "show", "HEAD:LICENSE"))
    print(f"{len(rules)} of {len(given)} rules")


def cut_rule(rule: dict[str, Any]) -> dict[str, Any] | None:
    """Translate a rule; None if it needs the name of a file or of a variable."""
    if "path" in rule or "regex" not in rule:
        return None
    # a rule may know both a name and a form: the form is kept
    forms = split_alternatives(rule["regex"])
    kept = [one for one in forms if ASSIGNMENT not in one]
    if not kept:
        return None
    pattern = translate_pattern("|".join(kept))
    re.compile(pattern, re.ASCII)
    allowed = [one for entry in rule.get("allowlists", ()) for one in entry.get("regexes", ())]
    keywords = [word for word in rule["keywords"] if kept == forms or word in pattern.lower()]
    cut = {"id": rule["id"], "pattern": pattern, "entropy": rule.get("entropy", 0), "keywords": keywords}
    return cut | ({"allowed": [translate_pattern(one) for one in allowed]} if allowed else {})


def translate_pattern(pattern: str) -> str:
    """Translate a pattern from Go's notation (RE2) to Python's, and let a key end before any punctuation."""
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")
    pattern = re.sub(re.escape(END) + r"(?:\|\\b)?\)", lambda _: PLAIN_END, pattern)
    while (at := pattern.find("(?i)", 1)) > 0:
        pattern = _scope_flag(pattern, at)
    return pattern


def _scope_flag(pattern: str, at: int) -> str:
    """Write a flag within a pattern as a group: Python takes one only at the beginning."""
    end = next((place for place, depth in _iter_depths(pattern, at + 4) if depth < 0), len(pattern))
    rest = pattern[at + 4 : end]
    if len(split_alternatives(rest)) > 1:
        raise SystemExit(f"alternatives behind a flag: {pattern}")
    return f"{pattern[:at]}(?i:{rest}){pattern[end:]}"


def split_alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars that are in no group."""
    bars = [place for place, depth in _iter_depths(pattern, 0) if depth == 0 and pattern[place] == "|"]
    return [pattern[begin:end] for begin, end in zip([0, *(at + 1 for at in bars)], [*bars, None], strict=True)]


def _iter_depths(pattern: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the place of each sign outside of classes and escapes, with the depth of groups that it is in."""
    depth, place = 0, start
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\":
            place += 2
            continue
        if sign == "[":
            place = pattern.index("]", place + 2)
            while pattern[place - 1] == "\\":
                place = pattern.index("]", place + 1)
        depth += (sign == "(") - (sign == ")")
        yield place, depth
        place += 1


def _run_git(checkout: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(checkout), *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
