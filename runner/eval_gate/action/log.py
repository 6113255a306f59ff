"""What this step did and why, said in the log as it happens and kept for the summary."""

from __future__ import annotations

from eval_gate.github.commands import Commands
from eval_gate.github.failure import GitHubError, Kind


class Log:
    """The trail of one step. `losses` are what could not be published, for the summary's first lines."""

    def __init__(self, commands: Commands, read_only: str | None = None) -> None:
        self.commands = commands
        self.trail: list[str] = []
        self.losses: list[str] = []
        self.read_only = read_only
        """Why the token is not expected to write, if it is not: its refusals are then no surprise."""

    def did(self, what: str) -> None:
        """One step, in a sentence without its full stop."""
        self.trail.append(what)
        self.commands.say(what)

    def missed(self, what: str, hint: str = "") -> None:
        """Something that does not work here: a warning, with what to do about it, and a step of the trail."""
        self.trail.append(what)
        self.commands.warning(f"{what[:1].upper()}{what[1:]}{f'; {hint}' if hint else ''}")

    def lost(self, what: str, error: GitHubError) -> None:
        """Something that could not be published: the verdict is the same, and the log says what is missing."""
        if error.kind is Kind.FORBIDDEN and self.read_only:
            sentence = f"{what}: {self.read_only}; see docs/forks.md"
            self.did(sentence)
        else:
            sentence = f"{what}: {error}"
            self.trail.append(sentence)
            self.commands.warning(sentence)
        self.losses.append(sentence)
