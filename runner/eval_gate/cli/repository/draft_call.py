"""The arguments of one `eval-gate draft`, and the mode that they choose."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.options import find_option_source
from eval_gate.cli.terminal.console import Verbosity
from eval_gate.config.loader import find_config, load_config
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.struct import FrozenStruct


class DraftMode(StrEnum):
    """What a call of `draft` does, by the option that chooses it."""

    QUESTIONS = "QUESTIONS"
    """Ask a target the questions of a file."""
    LOG = "--from-log"
    TRACES = "--from-traces"
    RESULTS = "--from-results"
    PROXY = "--proxy"
    REVIEW = "--review"
    """Show the drafts of eval files one after the other, or as a list."""
    DECIDE = "--accept or --drop"
    """Accept and drop the named drafts without asking."""
    UPDATE = "--update"
    """Take the expectations of the named cases from what the target does now."""

    @property
    def writes_new_file(self) -> bool:
        """Whether the mode writes a new eval file."""
        return self not in {DraftMode.REVIEW, DraftMode.DECIDE, DraftMode.UPDATE}


class DraftCall(FrozenStruct):
    """Command line arguments of one `draft`."""

    files: tuple[str, ...]
    """The file of questions, or the eval files of a review or an update; empty for those of the configuration."""
    flags: dict[str, JsonValue]
    config_file: Path | None
    verbosity: Verbosity
    output: Path | None = None
    format: str = "tool-forge"
    from_log: Path | None = None
    from_traces: Path | None = None
    from_results: tuple[Path, ...] = ()
    fields: tuple[str, ...] = ()
    """Where the entries of a log have their parts, each as NAME=PATH."""
    port: int | None = None
    is_review: bool = False
    accept: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    assume_yes: bool = False
    has_turns: bool = False
    """The lines of a block of questions are the turns of a conversation."""
    resume: str | None = None

    @property
    def mode(self) -> DraftMode:
        """The mode that the arguments choose. Raises GateError `conflicting-options` if they choose several."""
        chosen = [
            mode
            for mode, is_chosen in (
                (DraftMode.LOG, self.from_log is not None),
                (DraftMode.TRACES, self.from_traces is not None),
                (DraftMode.RESULTS, bool(self.from_results)),
                (DraftMode.PROXY, self.port is not None),
                (DraftMode.REVIEW, self.is_review),
                (DraftMode.DECIDE, bool(self.accept or self.drop)),
                (DraftMode.UPDATE, bool(self.update)),
            )
            if is_chosen
        ]
        if len(chosen) > 1:
            raise GateError(
                "conflicting-options",
                f"{chosen[0]} cannot be combined with {chosen[1]}",
                "omit one of them: each is a mode of its own",
            )
        mode = chosen[0] if chosen else DraftMode.QUESTIONS
        self._check_options(mode)
        return mode

    def _check_options(self, mode: DraftMode) -> None:
        if mode is DraftMode.QUESTIONS and len(self.files) != 1:
            raise GateError(
                "missing-questions",
                "name one file of questions" if self.files else "there is nothing to draft from",
                "write one question a line: eval-gate draft questions.txt -o evals/first.golden.json; "
                "or use --from-log, --from-traces, --from-results or --proxy",
            )
        if mode.writes_new_file and self.output is None:
            raise GateError(
                "missing-output", "no file is named for the drafts", "name a new file: -o evals/first.golden.json"
            )
        if self.has_turns and self.format == "agentv":
            raise GateError(
                "conflicting-options",
                "--turns cannot be combined with --format agentv",
                "omit --format: in AgentV, messages have to stand before the first turn of a conversation",
            )
        unused = [
            ("-o", self.output is not None and not mode.writes_new_file),
            ("QUESTIONS", bool(self.files) and mode.writes_new_file and mode is not DraftMode.QUESTIONS),
            ("--field", bool(self.fields) and mode is not DraftMode.LOG),
            ("--judge", "judge" in self.flags and mode is not DraftMode.QUESTIONS),
            ("--simulated-user", "simulatedUser" in self.flags and mode is not DraftMode.UPDATE),
            ("--yes", self.assume_yes and mode is not DraftMode.UPDATE),
            ("--turns", self.has_turns and mode is not DraftMode.QUESTIONS),
            ("--resume", self.resume is not None and mode is not DraftMode.QUESTIONS),
        ]
        for option, is_used in unused:
            if is_used:
                raise GateError("conflicting-options", f"{option} cannot be combined with {mode}", f"omit {option}")

    def load_config(self) -> RunConfig:
        """Load the configuration. Raises GateError with every problem of options, variables and file."""
        evals: dict[str, JsonValue] = (
            {"evals": list(self.files)} if self.files and self.mode is not DraftMode.QUESTIONS else {}
        )
        file = self.config_file or find_config(Path.cwd())
        return load_config(self.flags | evals, os.environ, file, flag_source=find_option_source())
