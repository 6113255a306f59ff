"""`eval-gate run --watch`: runs again what a change of a file is about, until somebody ends it."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eval_gate.cli.running.single_run import RunCall, configuration, run_and_keep, show_kept
from eval_gate.cli.terminal.console import print_error, say
from eval_gate.config.load import CONFIG_NAMES, find_config
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.errors import ExitCode, GateError, TerminatedError
from eval_gate.files.changes import Stamps, stamps_of, wait_for_change
from eval_gate.files.place import shown_as, shown_from
from eval_gate.formats.discovery import belongs_to_another, discover
from eval_gate.gate.waivers.file import DEFAULT_PATH
from eval_gate.reports.words.numbers import count
from eval_gate.results.names import LATEST
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import console_line, first_few

_MOST_NAMED: Final = 5


class WatchedFiles(FrozenStruct):
    """What is looked at: eval files, found anew each time, and the files that a run of any of them rests on."""

    config: RunConfig
    root: Path
    basis: frozenset[Path]
    """Files, and folders of them such as one of tools."""

    def look(self) -> Stamps:
        """How all of them are now."""
        below = {file for folder in self.basis if folder.is_dir() for file in folder.iterdir()}
        return stamps_of({*self.basis, *below, *self.evals()})

    def evals(self) -> frozenset[Path]:
        """The eval files; none where there are none, which the next run says."""
        try:
            return frozenset(one.path for one in discover(self.config.evals, self.root))
        except GateError:
            return frozenset()

    def suites_of(self, files: Sequence[Path]) -> frozenset[str] | None:
        """The eval files whose cases these changes are about, as results name them; None where it is all of them."""
        if not self.basis.isdisjoint({*files, *(file.parent for file in files)}):
            return None
        beside = {file.parent for file in files if belongs_to_another(file)}
        evals = self.evals()
        meant = {*evals.intersection(files), *(file for file in evals if file.parent in beside)}
        return frozenset(shown_as(file, self.root) for file in meant)


def watched(config: RunConfig, config_file: Path | None, root: Path) -> WatchedFiles:
    """What is to be watched for a run with this configuration."""
    named = [
        config.target.targets if isinstance(config.target.targets, str) else None,
        config.target.system_prompt,
        config.seed_manifest_path or DEFAULT_SEED_MANIFEST,
        config.snapshot_path,
        config.tool_registry_path,
        (config.tool_registry_path or "").rpartition("#")[0],
        config.policy.accepted or DEFAULT_PATH,
        *([str(config_file)] if config_file else CONFIG_NAMES),
    ]
    return WatchedFiles(config, root, frozenset(root / one for one in named if one and "://" not in one))


def watch(call: RunCall) -> ExitCode:
    """Run, wait for a change, run what it is about, and so on until Ctrl-C; the exit code of the last run.

    Raises GateError for what no change of a file that is watched could mend.
    """
    gc.enable()  # this may go on for days
    return _Watch(call).go()


class _Watch:
    """The rounds. `code` is how the last one ended, None before the first; `due` what is to be run, None for all."""

    def __init__(self, call: RunCall) -> None:
        self._call = call
        self._root = Path.cwd()
        self._code: ExitCode | None = None
        self._due: frozenset[str] | None = None
        self._watched = self._read()

    def go(self) -> ExitCode:
        """All rounds, until somebody interrupts: while we wait, or in the middle of a run."""
        while True:
            before = self._watched.look()
            try:
                self._watched = self._read()
                before = self._watched.look()
                interrupted = self._run()
            except GateError as error:
                interrupted = False
                self._take(error)
            assert self._code is not None
            if interrupted:
                return self._code
            try:
                say(f"watching {count(len(self._watched.evals()), 'eval file')}: Ctrl-C ends")
                news = wait_for_change(self._watched.look, before)
            except TerminatedError:
                raise
            except KeyboardInterrupt:
                say(f"ended  exit {self._code.value}")
                return self._code
            self._hear(news)

    def _read(self) -> WatchedFiles:
        file = self._call.config_file or find_config(self._root)
        config = configuration(self._call)
        if config.baseline_reference is None:
            config = replace(config, baseline=LATEST)  # the last green one
        return watched(config, file, self._root)

    def _run(self) -> bool:
        """Run what is due, and show it; whether it was interrupted. Raises GateError."""
        if self._due is not None and not self._due:
            say("there is no case in there: nothing is run")
            return False
        session, kept = run_and_keep(self._call, self._watched.config, self._due)
        ids = [key.case_id for key, _ in kept.run.cases()]
        say(f"ran {count(len(ids), 'case')}{f': {_listed(ids)}' if kept.run.eval_paths is None else ''}")
        show_kept(self._call, session, kept)
        self._code, self._due = kept.exit_code, frozenset()
        return kept.interrupted is not None

    def _take(self, error: GateError) -> None:
        """Say what is wrong and go on, where a change of a file may mend it; else raise it."""
        mendable = any(problem.file and (self._root / problem.file).is_file() for problem in error.problems)
        if self._code is None and not mendable:
            raise error
        if self._code is not None and error.code in _NOTHING_TO_RUN:
            say(f"{error.message}: nothing is run")
            self._due = frozenset()
            return
        print_error(error)
        self._code = error.exit_code

    def _hear(self, news: Sequence[Path]) -> None:
        """Say what has changed, and see what that is about; what was due and could not be run still is."""
        say(f"\n{time.strftime('%H:%M:%S')} changed: {_listed([shown_from(file, self._root) for file in news])}")
        about = self._watched.suites_of(news)
        self._due = None if about is None or self._due is None else self._due | about


_NOTHING_TO_RUN: Final = frozenset({"nothing-selected", "nothing-failing"})


def _listed(names: Sequence[str]) -> str:
    return first_few(names, _MOST_NAMED, lambda name: console_line(name, 100))
