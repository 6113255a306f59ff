"""Evaluated states as the program reads them: the files of a commit on a disk, its own patterns, globs and digests."""

from __future__ import annotations

from pathlib import Path

from eval_gate.config.measures import select_patterns
from eval_gate.engine.preparation.measured_files import MeasuredFiles
from eval_gate.model.reuse import EvaluatedState
from tests.support.reuse_stories.repository import IMAGE, Files, Machine, Tree, disk
from tests.support.reuse_stories.runs import digest_setup


class Checkout:
    """A folder that becomes the checkout of one commit after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: Files = {}
        self._states: dict[object, EvaluatedState] = {}

    def read_state(self, tree: Tree, machine: Machine) -> EvaluatedState:
        """Read what the suites of a commit measure on this machine."""
        key = (tree.key, machine)
        if key not in self._states:
            self.check_out(tree)
            measured = MeasuredFiles(self.folder, {} if machine.image is None else {IMAGE: machine.image})
            measures = tree.config.get("measures", [])
            suites = [measured.measure(suite, select_patterns(measures, suite)) for suite in tree.suites]
            self._states[key] = EvaluatedState(parts=digest_setup(tree, machine), suites=tuple(suites))
        return self._states[key]

    def check_out(self, tree: Tree) -> None:
        """Change what differs from the commit that is here."""
        files = disk(tree)
        for path in [one for one, file in self._files.items() if files.get(one) != file]:
            (self.folder / path).unlink()
        for path in [one for one, file in files.items() if self._files.get(one) != file]:
            write(self.folder / path, files[path])
        self._files = files


def write(place: Path, file: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(file, encoding="utf-8")
