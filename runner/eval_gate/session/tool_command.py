"""Another tool's command, by which it runs some of its cases once more: what it is told, and what it brought."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.programs import as_whom
from eval_gate.errors import GateError
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.process.environment import Withheld, allowed, secrets_in
from eval_gate.process.folder import PrivateFolder, private_folder
from eval_gate.process.run import Command, ProcessError, StartRefusal, run
from eval_gate.result_formats.load import BroughtResults, load_results
from eval_gate.result_formats.rows import ResultRow
from eval_gate.session.rows import rules_of
from eval_gate.session.session import Session
from eval_gate.text.command_template import CommandTemplate, shell_quoted
from eval_gate.text.redact import Redactor

_SAID: Final = 300


class ToolCommand:
    """One command, with what went wrong with it so far. `what` is how people call it.

    Raises GateError where it would have to be root in a workflow.
    """

    def __init__(self, session: Session, brought: BroughtResults, command: str, what: str, until: float) -> None:
        """`until`: the monotonic time at which it is ended, whatever it does."""
        self._command = command
        self._what = what
        self._until = until
        self._brought = brought
        self._root = session.context.root
        self._environment = allowed(session.context.environment, names=session.config.pass_env)
        self._withheld = Withheld.of(session.context.environment, self._environment)
        self._rules = rules_of(session.config)
        self._redact = redactor_of(session.context)
        self.notes: dict[str, None] = dict.fromkeys(as_whom(session.context.environment))
        self.broke: str | None = None
        """Why it brought nothing, the last time that it did not; it is not worth asking again."""

    def can_name(self, row: ResultRow) -> bool:
        """Whether the command can be told of this case; a name that means something else to a program is not said."""
        name = row.again or row.id
        option = name.startswith("-") and re.search(r"\{ids?\}", self._command)
        lines = "{ids_file}" in self._command and len(name.splitlines()) > 1
        return not (option or lines or "\0" in name)

    async def once(self, cases: Mapping[CaseKey, ResultRow]) -> Mapping[CaseKey, Sequence[ResultRow]]:
        """One more execution of each of these cases, as far as the command brought one."""
        found: dict[CaseKey, list[ResultRow]] = {}
        for part in self._parts(list(cases.values())):
            for row in await self._run(part):
                if row.status is not Status.SKIPPED:  # a runner's filter leaves what it does not run as skipped
                    found.setdefault(row.key, []).append(row)
        by_content = self._by_content(found)
        brought = {key: found.get(key) or by_content.get((key.suite, row.content)) or [] for key, row in cases.items()}
        if self.broke is None and not any(brought.values()):
            self._nothing(f"its results hold none of the cases in doubt, such as {next(iter(cases)).case_id}")
        return brought

    def _by_content(self, found: Mapping[CaseKey, list[ResultRow]]) -> dict[tuple[str, str | None], list[ResultRow]]:
        """What came under a name that nobody knows, by what alone asks it in its suite: some names are shorter alone.

        What has the name of another case is that case's, whatever it asks.
        """
        known = self._brought.cases
        asks = Counter((key.suite, rows[0].content) for key, rows in known.items())
        strange = {(key.suite, rows[0].content): rows for key, rows in found.items() if key not in known}
        return {asked: rows for asked, rows in strange.items() if asked[1] is not None and asks[asked] == 1}

    def _parts(self, rows: list[ResultRow]) -> Iterator[list[ResultRow]]:
        """What one call of the command is for: all of them, or each alone where it takes one name."""
        yield from ([row] for row in rows) if "{id}" in self._command else (rows,)

    async def _run(self, rows: Sequence[ResultRow]) -> list[ResultRow]:
        """What one call brought; nothing where it could not be started, took too long, or left nothing to read."""
        try:
            with private_folder("eval-gate-again-", self._root) as folder:
                return await self._run_in(folder, [row.again or row.id for row in rows])
        except ProcessError as error:
            longest = error.refusal is StartRefusal.TOO_LONG
            return self._nothing(f"{error.message}: name {{ids_file}} in it" if longest else error.message)

    async def _run_in(self, folder: PrivateFolder, names: Sequence[str]) -> list[ResultRow]:
        output = folder.path / f"again{Path(self._brought.files[0]).suffix}"
        listed = folder.write("ids.txt", "".join(f"{name}\n" for name in names).encode())
        before = self._written()
        done = await run(
            Command(
                _filled(self._command, names, listed, output),
                cwd=self._root,
                environment=self._environment,
                timeout_s=max(self._until - time.monotonic(), 1.0),
                mask=self._redact.data,
            )
        )
        if done.timed_out:
            return self._nothing("it was ended when the budget for re-runs was used up")
        elsewhere = "{output}" not in self._command
        after = self._written()
        anew = [place for place in self._brought.files if before.get(place) != after.get(place)]
        if elsewhere and not anew:  # what is there is what is in doubt
            return self._nothing(
                f"it {done.ending} and did not write {self._brought.files[0]} anew: name {{output}} in it"
            )
        places = anew if elsewhere else [str(output)]
        try:
            if output.is_symlink():
                raise ProcessError("it left a link in place of its results")
            return list(load_results(places, self._brought.format, self._rules, self._redact).rows)
        except GateError as error:
            # that the tool says no by its exit code is what it was asked for
            said = done.stderr.text(_SAID).strip() or "; ".join(one.message for one in error.problems)
            hint = self._withheld.needed(self._command, done.stderr.text())
            return self._nothing(f"it {done.ending} and left no results: {said}{f' ({hint})' if hint else ''}")

    def _written(self) -> dict[str, int]:
        """When each of the judged files and folders was written last."""
        return {name: Path(name).stat().st_mtime_ns for name in self._brought.files if Path(name).exists()}

    def _nothing(self, why: str) -> list[ResultRow]:
        why = " ".join(why.split())
        self.notes[f"{self._what} brought nothing: {why}"] = None
        self.broke = why
        return []


def redactor_of(context: RunContext) -> Redactor:
    """What masks the secrets that are set here: a tool that was given them may have written them down."""
    return Redactor((*context.secrets, *secrets_in(context.environment)))


def _filled(command: str, names: Sequence[str], listed: Path, output: Path) -> str:
    """The command as a line for the shell: every name is quoted, whatever it holds."""
    return CommandTemplate.of_rerun(command).render(
        {
            "ids": " ".join(map(shell_quoted, names)),
            "id": shell_quoted(names[0]),
            "ids_regex": shell_quoted(f"^({'|'.join(map(_escaped, names))})$"),
            "ids_file": shell_quoted(str(listed)),
            "output": shell_quoted(str(output)),
        }
    )


def _escaped(name: str) -> str:
    """The name as a pattern that JavaScript and Python read alike."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", name)
