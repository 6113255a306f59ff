"""Has another tool's command run cases once more: those in doubt, and with the base branch's agent what would fail."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget
from eval_gate.config.settings import RunConfig
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.programs import as_whom
from eval_gate.engine.rerun_allowance import Allowance
from eval_gate.engine.settling import trial_of, trials_of_control
from eval_gate.errors import GateError
from eval_gate.gate.confirming import Reruns
from eval_gate.gate.control.asking import ControlQuestions
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Blame, Status, Trial
from eval_gate.model.result import Control, RerunEnd, RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.environment import Withheld, allowed, secrets_in
from eval_gate.process.folder import PrivateFolder, private_folder
from eval_gate.process.run import Command, ProcessError, StartRefusal, run
from eval_gate.result_formats.load import BroughtResults, load_results
from eval_gate.result_formats.rows import ResultRow
from eval_gate.session.rows import execution_of, rules_of, storable
from eval_gate.session.session import Session
from eval_gate.struct import Struct, field, replace
from eval_gate.text.command_template import CommandTemplate, shell_quoted
from eval_gate.text.escape import one_line
from eval_gate.text.redact import Redactor

USUAL_BUDGET_S: Final = 600.0
USUAL_BUDGET: Final = RerunBudget(seconds=USUAL_BUDGET_S)
"""The budget where nobody said one; and no budget of another kind lets a command hang for longer."""
_SAID: Final = 300
_SAID_NOTHING: Final = TrialRecord(
    eval_file="", case_id="", trial=0, fingerprint="", status=Status.ERROR, attempts=1, blame=Blame.OURS
)
"""An execution that brought nothing for a case: it says nothing about the target, and is used up."""
_NO_ANSWER: Final = trial_of(_SAID_NOTHING)


class RerunSpending:
    """What all executions beyond the first ones may take, those of the base branch's agent too."""

    def __init__(self, config: RunConfig) -> None:
        said = config.limits.rerun_budget
        budget = USUAL_BUDGET if said is None else parse_rerun_budget(said)
        self.allowance = Allowance(budget)
        self.until = time.monotonic() + (budget.seconds or USUAL_BUDGET_S)

    def take(self, count: int) -> bool:
        """Whether so many more may begin."""
        return self.allowance.take(count) and time.monotonic() < self.until


class _Doubtful(Struct):
    """One case in doubt, and its re-runs so far."""

    row: ResultRow
    rows: list[ResultRow] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)


class ToolReruns:
    """Runs the command as often as one more result could decide. All cases in doubt are run together, or one by one.

    Raises GateError where the command would have to be root in a workflow.
    """

    def __init__(
        self,
        session: Session,
        brought: BroughtResults,
        reruns: Reruns,
        doubtful: Sequence[CaseKey],
        spending: RerunSpending,
    ) -> None:
        command = session.config.results.rerun_command
        assert command is not None
        self._tool = ToolCommand(session, brought, command, "the command for re-runs", spending.until)
        self._confirm = session.most_reruns
        self._reruns = reruns
        self._doubtful = doubtful
        self._spending = spending
        self._notes: dict[str, None] = {}
        self._spent = False
        rows = {key: brought.cases[key][0] for key in doubtful}
        self._cases = {key: _Doubtful(row) for key, row in rows.items() if self._can_name(row)}
        self._waiting = list(self._cases)

    @property
    def rows(self) -> Mapping[CaseKey, Sequence[ResultRow]]:
        """What the re-runs brought, by case."""
        return {key: one.rows for key, one in self._cases.items()}

    @property
    def ends(self) -> Mapping[CaseKey, RerunEnd]:
        """Why each case was not run once more."""
        told = {key: self._end(self._reruns.end(key, one.trials)) for key, one in self._cases.items()}
        return dict.fromkeys(self._doubtful, RerunEnd.IMPOSSIBLE) | told

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong, in words."""
        return tuple(dict.fromkeys((*self._tool.notes, *self._notes)))

    async def go_on(self) -> None:
        """Run again what is in doubt, for as long as it is and the budget lasts."""
        while self._waiting and (turn := self._reruns.turn(self._waiting)):
            if not await self._turn({key: self._cases[key] for key in turn}):
                break
            self._waiting = [key for key in self._waiting if key not in set(turn)]

    def _end(self, end: RerunEnd) -> RerunEnd:
        return RerunEnd.SPENT if end is RerunEnd.STOPPED and self._spent else end

    async def _turn(self, cases: Mapping[CaseKey, _Doubtful]) -> bool:
        """Run these again until each is decided; false where no more can be run."""
        reruns, allowance = self._reruns, self._spending.allowance
        while open_ := {key: one for key, one in cases.items() if reruns.wants_rerun(key, one.trials)}:
            if (left := allowance.remaining) is not None:  # one after the other to its end, where they are scarce
                open_ = dict(list(open_.items())[: max(left // max(self._confirm, 1), 1)])
            if not self._spending.take(len(open_)):
                self._spent = True
                new = all(key in reruns.fresh for key in open_)
                short = "new case was run as often as asked" if new else "case in doubt was decided"
                self._notes[f"the budget for re-runs was used up before every {short}"] = None
                return False
            await self._round(open_)
            if self._tool.broke is not None:  # a command that brings nothing once is not asked another five times
                return False
        return True

    def _can_name(self, row: ResultRow) -> bool:
        if self._tool.can_name(row):
            return True
        self._notes[f'"{one_line(row.id, 80)}" cannot be run again: its name is no word of a command'] = None
        return False

    async def _round(self, cases: Mapping[CaseKey, _Doubtful]) -> None:
        """One more execution of each of these cases."""
        brought = await self._tool.once({key: one.row for key, one in cases.items()})
        for key, one in cases.items():
            rows = brought[key]
            one.rows += rows
            self._spending.allowance.cost(sum(row.cost_usd or 0.0 for row in rows))
            one.trials += [trial_of(execution_of(row, 0)) for row in rows] or [_NO_ANSWER]


class BaseAgent:
    """Has the tool run cases with the base branch's agent, by the command that does so, only where the gate is red."""

    def __init__(self, session: Session, brought: BroughtResults, spending: RerunSpending) -> None:
        choice = session.config.control
        assert choice.command is not None
        self._config = session.config
        self._rows = {key: rows[0] for key, rows in brought.cases.items()}
        self._tool = ToolCommand(session, brought, choice.command, "the command for the base branch", spending.until)
        self._spending = spending
        self._target = TargetIdentity(
            name="base", provider=brought.format.value, identity=choice.named_command or "command"
        )
        self._told: dict[CaseKey, list[TrialRecord]] = defaultdict(list)
        self._trouble: str | None = None
        self._usd: float | None = None
        self._asked = False

    def with_answers(self, run: RunResult) -> RunResult:
        """The run with what the base branch's agent said."""
        answered = {
            key: replace(case, control=trials_of_control(told, case))
            for key, case in run.cases()
            if (told := self._told.get(key))
        }
        control = Control(target=self._target, trouble=self._trouble, cost_usd=self._usd)
        return replace(run.with_cases(answered), control=control)

    def ended(self, run: RunResult) -> RunResult:
        """The same at the end: of an agent that nobody needed nothing is said."""
        return self.with_answers(run) if self._asked or self._trouble is not None else run

    async def ask(self, run: RunResult, reruns: Reruns) -> bool:
        """Ask as long as the gate is red and the answers may turn that. Whether anything is cleared by them."""
        askable = frozenset(key for key, row in self._rows.items() if self._tool.can_name(row))
        asked = False
        while await self._more(reruns.of_control(self.with_answers(run), askable)):
            asked = True
        return asked and reruns.cleared(self.with_answers(run))

    async def _more(self, wanted: ControlQuestions) -> bool:
        """Have each of these run once; whether it is worth asking what comes next."""
        self._trouble = self._trouble or wanted.trouble
        if not wanted.keys or self._trouble is not None or not self._may_begin(wanted):
            return False
        self._asked = True
        brought = await self._tool.once({key: self._rows[key] for key in wanted.keys})
        kept = await storable(self._config, brought)
        costs = [row.cost_usd for rows in brought.values() for row in rows if row.cost_usd is not None]
        if costs:
            self._usd = (self._usd or 0.0) + sum(costs)
            self._spending.allowance.cost(sum(costs))
        for key in wanted.keys:
            # one answer each, whatever it wrote: it is asked once more where another may turn something
            told = self._told[key]
            told.append(execution_of(rows[0], len(told)) if (rows := kept.get(key)) else _SAID_NOTHING)
        if self._tool.broke is not None:
            self._trouble = f"its command brought nothing: {self._tool.broke[:_SAID]}"
        return self._trouble is None

    def _may_begin(self, wanted: ControlQuestions) -> bool:
        needed, allowance = len(wanted.keys) * wanted.rounds, self._spending.allowance
        if (allowance.remaining is not None and allowance.remaining < needed) or not self._spending.take(
            len(wanted.keys)
        ):
            more = "1 more answer" if needed == 1 else f"{needed} more answers"
            self._trouble = f"the rerun-budget of {allowance.budget} does not reach for {more}"
        return self._trouble is None


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
