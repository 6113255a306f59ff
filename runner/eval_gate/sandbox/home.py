"""Where the agents of suites work: each in a fresh folder that begins as somebody's `tmp/` is, or in that `tmp/`."""

from __future__ import annotations

from pathlib import Path

from eval_gate.sandbox.folder import FolderLimits, InitialFile, Sandbox
from eval_gate.sandbox.owners import OwnersFolder, ReservedNames
from eval_gate.struct import FrozenStruct, field


class Home(FrozenStruct):
    """What a folder for an agent is made of."""

    initial_files: tuple[InitialFile, ...] = ()
    """What a fresh folder begins with."""
    in_place: Path | None = None
    """The folder that agents work in as it is; None where each has a fresh one, which is removed."""
    reserved: ReservedNames | None = None
    """Names in it that belong to us."""
    parent: Path | None = None
    """Where fresh folders are made; None leaves it to the system."""
    limits: FolderLimits = field(default_factory=FolderLimits)

    def opened(self) -> Sandbox:
        """A folder to work in. Raises OSError."""
        if self.in_place is not None:
            return OwnersFolder(self.in_place, self.limits, self.reserved)
        return Sandbox(self.parent, self.limits, self.initial_files)
