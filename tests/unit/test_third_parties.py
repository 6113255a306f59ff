"""THIRD_PARTY_NOTICES.md names every package of the image whose licence asks for more than its own text."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASKS_FOR_MORE = re.compile(r"GPL|GNU|MPL|Mozilla|EPL|CDDL|EUPL", re.IGNORECASE)


def licence(name: str) -> str:
    try:
        facts = metadata(name)
    except PackageNotFoundError:  # for another platform
        return ""
    said = facts.get_all("Classifier") or []
    return " ".join(
        (
            facts.get("License-Expression") or "",
            (facts.get("License") or "")[:60],
            *(one for one in said if "License ::" in one),
        )
    )


def test_notices__name_every_package_under_a_licence_that_asks_for_more() -> None:
    lock = (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*\])?==", lock, re.MULTILINE)
    asking = {name for name in packages if ASKS_FOR_MORE.search(licence(name))}
    named = re.findall(r"^\| ([a-z0-9-]+) \|", (ROOT / "THIRD_PARTY_NOTICES.md").read_text("utf-8"), re.MULTILINE)
    assert asking == set(named) - {"package"}
    assert len(packages) > 50


def test_notices__are_in_the_image() -> None:
    assert "THIRD_PARTY_NOTICES.md /usr/share/doc/eval-gate/" in (ROOT / "Dockerfile").read_text("utf-8")
    assert "!THIRD_PARTY_NOTICES.md" in (ROOT / ".dockerignore").read_text("utf-8")
