"""Check words: documentation, messages, help texts, golden files, docstrings and comments use the glossary's terms.

    python -m tests.support.check_words            list every phrase that has a better one, with its place
    python -m tests.support.check_words --count    count them, for a comparison of two commits

Code in documentation is left out: it is held by its own tests. Names are held by `unit/support/test_support_names.py`.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PHRASES = {
    r"mend(?:s|ed|ing)?": "fix",
    r"asked (?:once )?again|asks? again": "re-run",
    r"said again|told again": "repeat",
    r"leads? nowhere": "not found",
    r"by the clock": "wall time",
    r"of answers ·": "agent time",
    r"if nothing (?:has )?changed, that happens": "chance without a real change: 1 in N",
    r"measured (?:otherwise|differently|alike)|yardsticks?": "evaluation setup, fingerprint",
    r"ledgers?": "history",
    r"could not decide|cannot decide|undecided": "inconclusive",
    r"not sure about": "inconclusive",
    r"could not be (?:judged|told)": "has no score",
    r"whose fault": "error kind",
    r"nobody (?:there|has|was|is|knows|says)": "name who does what",
    r"whoever": "name who does it",
    r"of which": "two sentences",
    r"so many": "a number, or 'that many'",
    r"alike": "the same",
    r"rare enough to be sure": "confirmed",
    r"acceptances?": "waiver",
    r"accepted (?:and quarantined|failures?|ones|until)": "waived",
    r"set aside": "waived, or quarantined",
    r"(?:is|are) no [a-z]+,? but": "say what it is",
    r"brought (?:results?|runs?|cases?)": "external results",
    r"the (?:brought|said|asked|told|kept)\b": "a noun",
    r"there and then|here and there": "name the run",
    r"base branch's agent too": "the base agent",
}
"""Phrases, as regular expressions without case, and what to write instead (docs/glossary.md)."""
PHRASES_INSIDE = {
    r"said|told": "a verb with its object",
    r"beside": "with, next to, or name the relation",
    r"nobody|somebody": "name who does what",
    r"ours|theirs": "name whose it is",
    r"mended|foreign|heard|leavings|pardon(?:ed|s)?|surroundings": "the glossary's term",
    r"unanswered|unsettled|doorkeeper": "the glossary's term",
    r"lessen(?:s|ed)?|spared?": "truncate, or not re-run",
    r"conclud(?:es?|ed|ing)|settl(?:es?|ed|ing)": "decide",
    r"judgements?": "score",
}
"""Further phrases that docstrings and comments do without."""


def _compile(phrases: dict[str, str]) -> dict[re.Pattern[str], str]:
    return {re.compile(rf"\b(?:{phrase})(?![\w-])", re.IGNORECASE): instead for phrase, instead in phrases.items()}


_PATTERNS = _compile(PHRASES)
_PATTERNS_INSIDE = _PATTERNS | _compile(PHRASES_INSIDE)
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
EXCEPTIONS = {
    "docs/glossary.md": "names the words that other pages do not use",
    "docs/verdict.md": "its figures and phrases are written by the program",
    "tests/golden/comment/problem-github.md": "quotes an error that a test makes up",
    "runner/eval_gate/analysis/judge_calibration.py": "a label of people that says neither yes nor no is undecided",
}


class FoundPhrase(NamedTuple):
    """One phrase that has a better one."""

    file: str
    line: int
    text: str
    instead: str


def find_phrases(root: Path = ROOT) -> Iterator[FoundPhrase]:
    """Yield every phrase in what people read below a checkout."""
    for found in _find_all(root):
        if found.file not in EXCEPTIONS:
            yield found


def _find_all(root: Path) -> Iterator[FoundPhrase]:
    for file, text in iter_pages(root):
        yield from _search(file, 1, _CODE.sub(lambda found: "\n" * found[0].count("\n"), text))
    for file in sorted((root / "runner" / "eval_gate").rglob("*.py")):
        tree = ast.parse(file.read_bytes())
        for line, text in iter_literals(tree):
            yield from _search(str(file.relative_to(root)), line, text)
        for line, text in (*_iter_docstrings(tree), *_iter_comments(file)):
            yield from _search(str(file.relative_to(root)), line, _CODE.sub("", text), _PATTERNS_INSIDE)
    for folder in ("runner/eval_gate/reports/templates", "runner/eval_gate/reports/page", "tests/golden"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in {".j2", ".js", ".md", ".txt"}:
                yield from _search(str(file.relative_to(root)), 1, file.read_text(encoding="utf-8"))


def iter_pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the pages of the documentation with their text."""
    for file in (*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))):
        if file.name != "CHANGELOG.md":
            yield str(file.relative_to(root)), file.read_text(encoding="utf-8")


def iter_literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a module with their lines, without docstrings."""
    docstrings = {id(node) for node in _iter_docstring_nodes(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def _iter_docstring_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the strings that document modules, classes, functions, fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _iter_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in _iter_docstring_nodes(tree):
        yield node.lineno, str(node.value)


def _iter_comments(file: Path) -> Iterator[tuple[int, str]]:
    with file.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def _search(file: str, line: int, text: str, patterns: dict[re.Pattern[str], str] = _PATTERNS) -> Iterator[FoundPhrase]:
    for pattern, instead in patterns.items():
        for found in pattern.finditer(text):
            yield FoundPhrase(file, line + text.count("\n", 0, found.start()), found[0], instead)


def main(arguments: list[str]) -> int:
    """List or count the phrases. Return 1 if there is any."""
    root = Path(arguments[-1]) if arguments and not arguments[-1].startswith("-") else ROOT
    found = list(find_phrases(root))
    if "--count" in arguments:
        for instead, number in Counter(one.instead for one in found).most_common():
            print(f"{number:6}  {instead}")
    else:
        for one in found:
            print(f'{one.file}:{one.line}: "{one.text}": write {one.instead}')
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
