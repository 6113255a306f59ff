"""Files, modules and what is in them, named in documentation, docstrings and comments: they are still there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import eval_gate

PACKAGE, ROOT = Path(eval_gate.__file__).parent, Path(__file__).parents[2]
ROOMS = {one.stem for one in PACKAGE.iterdir() if one.stem[0] != "_" and (one.suffix == ".py" or one.is_dir())}
FILE = re.compile(r"`((?:[\w-]+/)+\w+\.py)`")
DOTTED = re.compile(rf"`(?:eval_gate\.)?((?:{'|'.join(sorted(ROOMS))})(?:\.\w+)+)(?:\(\))?`")
FILE_NAME = re.compile(r"\.(?:py|jsonl?|ya?ml|md)$")
OTHERS = {"process.execve", "session.open_session", "sandbox.Sandbox"}  # of Node; entrances, named from their room on
PAGES = {*(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "contract" / "security.md"}


def named(pattern: re.Pattern[str]) -> Iterator[tuple[str, Path]]:
    """What is named so, each with where."""
    sources = [file for folder in (PACKAGE, ROOT / "benchmarks") for file in folder.rglob("*.py")]
    for file in (*PAGES, *sources, *(ROOT / "tests").rglob("test_*.py")):
        yield from ((found, file) for found in pattern.findall(file.read_text(encoding="utf-8")))


def is_there(dotted: str) -> bool:
    """Whether these are a room, a module in it, or what that module defines; of a class any member."""
    place, names = PACKAGE, dotted.split(".")
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    if not names:
        return True
    module = (place / names.pop(0)).with_suffix(".py")
    if not module.is_file():
        return False
    text = module.read_text(encoding="utf-8")
    return all(re.search(rf"^ *(?:(?:async )?def |class )?{name}\b[(:\[ ]", text, re.MULTILINE) for name in names)


def test_files__named_with_their_folder__are_there() -> None:
    paths = {
        path.relative_to(ROOT).as_posix()
        for top in ("runner", "tests", "benchmarks", "requirements")
        for path in (ROOT / top).rglob("*.py")
    }
    found = [(one, file) for one, file in named(FILE) if "/targets/echo/" not in one]  # a worked example adds it
    assert len(found) > 100
    assert [(one, file) for one, file in found if not any(f"/{path}".endswith(f"/{one}") for path in paths)] == []


def test_modules__named_with_their_room__are_there_with_what_is_named_of_them() -> None:
    found = [(one, file) for one, file in named(DOTTED) if not FILE_NAME.search(one) and one not in OTHERS]
    assert len(found) > 3
    assert [(one, file) for one, file in found if not is_there(one)] == []


def test_is_there__of_what_was_renamed__says_no() -> None:
    assert is_there("engine.case_result.join_trials")
    assert is_there("engine.case_result")
    assert not is_there("engine.silence")
    assert not is_there("engine.trials.join_trials")
    assert not is_there("model.base.made")
