"""The tests have the rooms of the package, and `tests/README.md` lists what there is to build them with."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE, TESTS = ROOT / "runner" / "eval_gate", ROOT / "tests"

TESTED_ELSEWHERE = {
    "action/publishing": "unit/action",
    "action/trust": "unit/action",
    "cli/repository": "integration",
    "cli/runs": "integration",
    "cli/starter": "integration",
    "cli/stored_runs": "integration",
    "cli/terminal": "integration",
    "files": "unit/results",
    "reports/exports": "unit/reports",
}
"""Rooms without a folder of unit tests, and the folder whose tests walk through them."""
COPIED = "cli/starter/files/checks"
NO_ROOMS = {"examples", "support"}
"""Of `unit/`: what is tested there is not in the package."""

MOST_OTHER_SUBJECTS = 1_340
"""Tests of `unit/` whose subject is nothing of the package. This number only goes down: rename some where you work."""

SAID_TWICE: dict[str, str] = {}
"""Names that two classes have, and why."""
AS_IN_FILES = "wire.py"
"""Modules whose classes are called as the format that they declare calls its parts: every format has its `Case`."""


def rooms(folder: Path) -> set[str]:
    """Folders with Python in them, below this one; not what the program only copies."""
    return {file.parent.relative_to(folder).as_posix() for file in folder.rglob("*.py")} - {".", COPIED}


def test_rooms__each__has_its_folder_of_unit_tests_or_says_where_it_is_tested() -> None:
    made = rooms(TESTS / "unit")
    within = {parent.as_posix() for room in made for parent in Path(room).parents} - {"."}
    assert rooms(PACKAGE) - made - within == TESTED_ELSEWHERE.keys()
    assert made - rooms(PACKAGE) == NO_ROOMS
    for folder in TESTED_ELSEWHERE.values():
        assert list((TESTS / folder).rglob("test_*.py")), folder


def test_classes__each_that_others_may_use__has_a_name_that_no_other_has() -> None:
    made = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        if file.name != AS_IN_FILES:
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    made[node.name].append(file.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in made.items() if len(files) > 1 and name not in SAID_TWICE} == {}
    assert all(len(made[name]) > 1 for name in SAID_TWICE)


def test_modules_of_tests__each__begins_with_its_rooms() -> None:
    for file in (TESTS / "unit").rglob("test_*.py"):
        if (room := file.parent.relative_to(TESTS / "unit").as_posix()) != ".":
            assert file.stem.startswith(f"test_{room.replace('/', '_')}"), file


def test_support__each_module__is_in_the_readme() -> None:
    listed = re.findall(
        r"`([\w/]+\.py|\w+/)`", (TESTS / "README.md").read_text().partition("## What `support/` offers")[2]
    )
    there = {file.name for file in (TESTS / "support").glob("*.py")}
    there |= {f"{file.parent.name}/" for file in (TESTS / "support").glob("*/*.py")}
    assert sorted(listed) == sorted(there)


def test_readme__its_folders__are_those_there_are() -> None:
    folders = (TESTS / "README.md").read_text().partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)/` \|", folders, flags=re.MULTILINE)
    there = {file.parent.relative_to(TESTS).parts[0] for file in TESTS.glob("*/**/*.*") if file.suffix != ".pyc"}
    assert sorted(listed) == sorted(there - {"support"})


def test_properties__none__has_a_wall_clock_of_its_own() -> None:
    """One profile for all, in `conftest.py`."""
    found = [file for file in TESTS.rglob("test_*.py") if re.search(r"settings\([^)]*\bdeadline\s*=", file.read_text())]
    assert found == []


def test_subjects__that_are_no_function_class_module_or_topic_of_the_file__are_no_more_than_there_were() -> None:
    known = set[str]()
    for file in PACKAGE.rglob("*.py"):
        known.update(file.relative_to(PACKAGE).with_suffix("").parts)
        defined = re.findall(r"(?m)^ *(?:async def|def|class) _*(\w+)", file.read_text(encoding="utf-8"))
        known.update(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in defined)
    subjects = [
        (subject, file)
        for file in (TESTS / "unit").rglob("test_*.py")
        for subject in re.findall(r"(?m)^(?:async )?def test_(\w+?)__", file.read_text(encoding="utf-8"))
    ]
    others = [
        one for one in subjects if known.isdisjoint({one[0], one[0].removesuffix("s")}) and one[0] not in one[1].stem
    ]
    assert len(subjects) > 4_000
    assert len(others) <= MOST_OTHER_SUBJECTS, "begin a test with the function, class or module that it tests"
