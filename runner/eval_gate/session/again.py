"""Has another tool run its cases in doubt again, by the command that says how, within a budget of time."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget
from eval_gate.engine.allowance import Allowance
from eval_gate.engine.preparing.programs import as_whom
from eval_gate.engine.settling import trial_of
from eval_gate.errors import GateError
from eval_gate.gate.confirming import Reruns
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Blame, Status, Trial
from eval_gate.model.result import RerunEnd
from eval_gate.process.environment import Withheld, allowed, secrets_in
from eval_gate.process.folder import PrivateFolder, private_folder
from eval_gate.process.run import Command, ProcessError, Refusal, run
from eval_gate.result_formats.load import Brought, load_results
from eval_gate.result_formats.rows import Row
from eval_gate.session.rows import execution_of, rules_of
from eval_gate.session.session import Around, Session
from eval_gate.text.commands.template import Template, quoted
from eval_gate.text.escape import one_line
from eval_gate.text.redact import Redactor

USUAL_BUDGET_S: Final = 600.0
USUAL_BUDGET: Final = RerunBudget(seconds=USUAL_BUDGET_S)
"""The budget where nobody said one; and no budget of another kind lets a command hang for longer."""
_SAID: Final = 300
_NO_ANSWER: Final = Trial(status=Status.ERROR, score=0.0, duration_ms=0.0, blame=Blame.OURS)
"""A re-run that brought nothing for a case: it says nothing about the target, and is used up."""


@dataclass(frozen=True, slots=True)
class RanAgain:
    """What the re-runs brought: rows by case, why each case was not run once more, and what went wrong in words."""

    rows: Mapping[CaseKey, Sequence[Row]]
    ends: Mapping[CaseKey, RerunEnd]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Doubtful:
    """One case in doubt, and its re-runs so far."""

    row: Row
    rows: list[Row] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)


class Again:
    """Runs the command as often as one more result could decide. All cases in doubt are run together, or one by one.

    Raises GateError where the command would have to be root in a workflow.
    """

    def __init__(self, session: Session, brought: Brought) -> None:
        choice = session.config.results
        assert choice.rerun_command is not None
        whom = as_whom(session.around.environment)
        self._command = choice.rerun_command
        said = session.config.limits.rerun_budget
        budget = USUAL_BUDGET if said is None else parse_rerun_budget(said)
        self._confirm = session.config.policy.confirm
        self._allowance = Allowance(budget)
        self._until = time.monotonic() + (budget.seconds or USUAL_BUDGET_S)
        self._brought = brought
        self._root = session.around.root
        names = session.config.pass_env
        self._environment = allowed(session.around.environment, names=names)
        self._withheld = Withheld.of(session.around.environment, self._environment)
        self._rules = rules_of(session.config)
        self._redact = redactor_of(session.around)
        self._notes: dict[str, None] = dict.fromkeys(whom)
        self._broke = False
        self._spent = False

    async def rerun(self, reruns: Reruns, doubtful: Sequence[CaseKey]) -> RanAgain:
        """Run again what `reruns` doubts, for as long as it does and the budget lasts."""
        rows = {key: self._brought.cases[key][0] for key in doubtful}
        cases = {key: _Doubtful(row) for key, row in rows.items() if self._can_name(row)}
        waiting = list(cases)
        while waiting and (turn := reruns.turn(waiting)):
            if not await self._turn(reruns, {key: cases[key] for key in turn}):
                break
            waiting = [key for key in waiting if key not in set(turn)]
        return RanAgain(
            {key: one.rows for key, one in cases.items()},
            dict.fromkeys(doubtful, RerunEnd.IMPOSSIBLE)
            | {key: self._end(reruns.end(key, one.trials)) for key, one in cases.items()},
            tuple(self._notes),
        )

    def _end(self, end: RerunEnd) -> RerunEnd:
        return RerunEnd.SPENT if end is RerunEnd.STOPPED and self._spent else end

    async def _turn(self, reruns: Reruns, cases: Mapping[CaseKey, _Doubtful]) -> bool:
        """Run these again until each is decided; false where no more can be run."""
        while open_ := {key: one for key, one in cases.items() if reruns.again(key, one.trials)}:
            if (left := self._allowance.left) is not None:  # one after the other to its end, where they are scarce
                open_ = dict(list(open_.items())[: max(left // max(self._confirm, 1), 1)])
            if not self._allowance.take(len(open_)) or time.monotonic() >= self._until:
                self._spent = True
                new = all(key in reruns.fresh for key in open_)
                short = "new case was run as often as asked" if new else "case in doubt was decided"
                self._notes[f"the budget for re-runs was used up before every {short}"] = None
                return False
            await self._round(open_)
            if self._broke:  # a command that brings nothing once is not asked another five times
                return False
        return True

    def _can_name(self, row: Row) -> bool:
        """Whether the command can be told of this case; a name that means something else to a program is not said."""
        name = row.again or row.id
        option = name.startswith("-") and re.search(r"\{ids?\}", self._command)
        lines = "{ids_file}" in self._command and len(name.splitlines()) > 1
        if not (option or lines or "\0" in name):
            return True
        self._notes[f'"{one_line(row.id, 80)}" cannot be run again: its name is no word of a command'] = None
        return False

    async def _round(self, cases: Mapping[CaseKey, _Doubtful]) -> None:
        """One more execution of each of these cases."""
        found: dict[CaseKey, list[Row]] = {}
        for part in self._parts(list(cases.values())):
            for row in await self._run([one.row for one in part]):
                if row.status is not Status.SKIPPED:  # a runner's filter leaves what it does not run as skipped
                    found.setdefault(row.key, []).append(row)
        by_content = self._by_content(found)
        brought = {
            key: found.get(key) or by_content.get((key.suite, one.row.content)) or [] for key, one in cases.items()
        }
        if not self._broke and not any(brought.values()):
            self._nothing(f"its results hold none of the cases in doubt, such as {next(iter(cases)).case_id}")
        for key, one in cases.items():
            rows = brought[key]
            one.rows += rows
            self._allowance.cost(sum(row.cost_usd or 0.0 for row in rows))
            one.trials += [trial_of(execution_of(row, 0)) for row in rows] or [_NO_ANSWER]

    def _by_content(self, found: Mapping[CaseKey, list[Row]]) -> dict[tuple[str, str | None], list[Row]]:
        """What came under a name that nobody knows, by what alone asks it in its suite: some names are shorter alone.

        What has the name of another case is that case's, whatever it asks.
        """
        known = self._brought.cases
        asks = Counter((key.suite, rows[0].content) for key, rows in known.items())
        strange = {(key.suite, rows[0].content): rows for key, rows in found.items() if key not in known}
        return {asked: rows for asked, rows in strange.items() if asked[1] is not None and asks[asked] == 1}

    def _parts(self, cases: list[_Doubtful]) -> Iterator[list[_Doubtful]]:
        """What one call of the command is for: all of them, or each alone where it takes one name."""
        yield from ([one] for one in cases) if "{id}" in self._command else (cases,)

    async def _run(self, rows: Sequence[Row]) -> list[Row]:
        """What one call brought; nothing where it could not be started, took too long, or left nothing to read."""
        try:
            with private_folder("eval-gate-again-", self._root) as folder:
                return await self._run_in(folder, [row.again or row.id for row in rows])
        except ProcessError as error:
            longest = error.refusal is Refusal.TOO_LONG
            return self._nothing(f"{error.message}: name {{ids_file}} in it" if longest else error.message)

    async def _run_in(self, folder: PrivateFolder, names: Sequence[str]) -> list[Row]:
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

    def _nothing(self, why: str) -> list[Row]:
        self._notes[f"the command for re-runs brought nothing: {' '.join(why.split())}"] = None
        self._broke = True
        return []


def redactor_of(around: Around) -> Redactor:
    """What masks the secrets that are set here: a tool that was given them may have written them down."""
    return Redactor((*around.secrets, *secrets_in(around.environment)))


def _filled(command: str, names: Sequence[str], listed: Path, output: Path) -> str:
    """The command as a line for the shell: every name is quoted, whatever it holds."""
    return Template.of_rerun(command).render(
        {
            "ids": " ".join(map(quoted, names)),
            "id": quoted(names[0]),
            "ids_regex": quoted(f"^({'|'.join(map(_escaped, names))})$"),
            "ids_file": quoted(str(listed)),
            "output": quoted(str(output)),
        }
    )


def _escaped(name: str) -> str:
    """The name as a pattern that JavaScript and Python read alike."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", name)
