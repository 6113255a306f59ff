"""Every regular expression in our source with how it is used, and texts that make a bad one slow."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from re import _constants, _parser  # the only reader of patterns there is

import eval_gate

ROOT = Path(eval_gate.__file__).parent
MAX_SAMPLES = 8
METHODS = ("match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split")
_CALL = re.compile(rf"\bre\.({'|'.join(METHODS)})\(")
SEARCHES = frozenset({"search", "sub", "subn", "findall", "finditer", "split"})


@dataclass(frozen=True)
class Used:
    """A pattern where it stands, and how it is held against a text: from its beginning, as a whole, or anywhere."""

    place: str
    pattern: re.Pattern
    method: str

    def __call__(self, text: str | bytes) -> None:
        if self.method == "sub":
            self.pattern.sub(text[:0], text)
        else:
            getattr(self.pattern, self.method)(text)


def patterns() -> list[Used]:
    """All of them: literals given to functions of `re`, and compiled patterns that modules hold."""
    found = []
    everywhere = _find_methods("\n".join(file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py"))))
    for file in sorted(ROOT.rglob("*.py")):
        if "files" in file.parts:
            continue  # what `init` writes into other repositories
        source = file.read_text(encoding="utf-8")
        name = str(file.relative_to(ROOT))
        held = _held(file)
        # the trees of all modules would cost each worker two seconds before its first test
        for node in ast.walk(ast.parse(source)) if _CALL.search(source) else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            whose, method = ast.unparse(node.func.value), node.func.attr
            if whose == "re" and method in METHODS and isinstance(node.args[0], ast.Constant):
                pattern = re.compile(node.args[0].value, _flags(node))
                found.append((f"{name}: {pattern.pattern!r}", pattern, method))
        for variable, pattern in held.items():
            methods = _find_methods(source) if variable.startswith("_") else everywhere
            found += [(f"{name}: {variable}", pattern, method) for method in sorted(methods.get(variable, ()))]
    kinds = [(place, pattern, "search" if method in SEARCHES else method) for place, pattern, method in found]
    return [Used(*one) for one in dict.fromkeys(kinds)]


def _held(file: Path) -> dict[str, re.Pattern]:
    """The compiled patterns that this module made."""
    source = file.read_text(encoding="utf-8")
    if "re.compile(" not in source or file.name == "__main__.py":
        return {}
    module = importlib.import_module(".".join(("eval_gate", *file.relative_to(ROOT).with_suffix("").parts)))
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and re.search(rf"^{name}\b", source, re.MULTILINE)
    }


def _find_methods(source: str) -> dict[str, set[str]]:
    """Find by which methods each name is used as a pattern."""
    methods = defaultdict[str, set[str]](set)
    for name, method in re.findall(rf"\b(\w+)\.({'|'.join(METHODS)})\b", source):
        methods[name].add(method)
    return methods


def _flags(call: ast.Call) -> int:
    flags = 0
    for node in ast.walk(call):
        if isinstance(node, ast.Attribute) and node.attr.isupper():
            flags |= getattr(re, node.attr, 0)
    return flags


def attacks(pattern: re.Pattern, size: int) -> Iterator[str | bytes]:
    """Texts of one or two characters that the pattern knows, again and again, behind each beginning it may have.

    What makes a backtracking matcher slow is a long run that fits several parts of the pattern and fails at its end.
    """
    samples = list(dict.fromkeys(_samples(_parser.parse(pattern.pattern, pattern.flags))))
    starts = list(dict.fromkeys("".join(samples[:length]) for length in (0, 1, 2, 3, 5)))
    chars = list(dict.fromkeys([*samples[:MAX_SAMPLES], *' \n\\[{"`a0']))
    pumps = [*chars, *(first + second for first, second in pairwise(chars)), *starts[1:], "e\u0301"]
    for start in starts:
        for pump in pumps:
            text = start + pump * (size // len(pump)) + "\x00!"
            yield text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text


def _samples(parsed: _parser.SubPattern | list) -> Iterator[str]:
    """A character of every part of the pattern, in their order."""
    for operation, value in parsed:
        match str(operation):
            case "LITERAL" | "NOT_LITERAL":
                yield chr(value)
            case "IN":
                yield from (_of_class(*member) for member in value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from _samples(value[2])
            case "BRANCH":
                yield from (char for branch in value[1] for char in _samples(branch))
            case "SUBPATTERN":
                yield from _samples(value[3])
            case "ASSERT" | "ASSERT_NOT":
                yield from _samples(value[1])
            case "ATOMIC_GROUP":
                yield from _samples(value)


def _of_class(operation: object, value: object) -> str:
    match operation, value:
        case _constants.LITERAL, int():
            return chr(value)
        case _constants.RANGE, (int() as first, _):
            return chr(first)
        case _constants.CATEGORY, _:
            return {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " "}.get(str(value), "w")
        case _:
            return "-"
