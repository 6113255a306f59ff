"""docs/architecture.md names packages, entry points and modules that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import eval_gate

PACKAGE, ROOT = Path(eval_gate.__file__).parent, Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("## Example")[0]
ROOM = re.compile(r"^\| `([a-z_]+)(/|\.py)` \|.*\|([^|]*)\|$", re.MULTILINE)


def is_there(path: str) -> bool:
    """Whether it is a room or a module: of the package, of one of its rooms, or beside it (`benchmarks/growth.py`)."""
    places = [ROOT, PACKAGE, *PACKAGE.iterdir()]
    return any((place / f"{path}{ending}").exists() for place in places for ending in ("", ".py"))


def test_packages__of_the_page__are_those_of_the_package() -> None:
    named = {f"{name}{kind if kind == '.py' else ''}" for name, kind, _ in ROOM.findall(PAGE)}
    made = {one.name for one in PACKAGE.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()}
    assert named == made - {"__init__.py", "__main__.py"}


def test_entry_points__of_every_package__exist() -> None:
    entrances = [
        (room, entrance) for room, kind, column in ROOM.findall(PAGE) for entrance in re.findall(r"`([\w.]+)`", column)
    ]
    assert len(entrances) > 20
    for room, entrance in entrances:
        *modules, name = entrance.split(".")
        module = import_module(".".join(["eval_gate", room, *modules]))
        assert hasattr(module, name) or is_there(f"{room}/{entrance.replace('.', '/')}"), (room, entrance)


def test_modules__that_are_named_with_their_package__exist() -> None:
    folders = {folder.name for folder in PACKAGE.rglob("*") if folder.is_dir()}
    paths = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py)?)`", PAGE))
    named = {path for path in paths if path.endswith(".py") or path.partition("/")[0] in folders}
    assert len(named) > 25
    assert sorted(one for one in named if not is_there(one)) == []
