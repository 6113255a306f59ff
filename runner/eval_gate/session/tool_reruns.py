"""Re-run suspected cases with another tool's command, also with the base branch's agent."""

from __future__ import annotations

import re
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget
from eval_gate.config.settings import RunConfig
from eval_gate.engine.case_result import build_base_agent_trials, build_trial
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.preparation.program_user import check_command_user
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.rerun_policy import RerunAllowance
from eval_gate.errors import GateError
from eval_gate.external_results.loader import ExternalResults, load_external_results
from eval_gate.external_results.result_files import ResultsPath
from eval_gate.external_results.result_rows import ResultRow
from eval_gate.gate.reruns import Reruns
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import BaseAgentSummary, RerunStopReason, RunResult
from eval_gate.model.selection import BaseAgentCases
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.environment import WithheldVariables, filter_environment, find_secrets
from eval_gate.process.private_folder import PrivateFolder, open_private_folder
from eval_gate.process.run import Command, ProcessError, StartRefusal, run
from eval_gate.session.external_cases import build_execution, build_score_rules, redact_rows
from eval_gate.session.session import Session
from eval_gate.struct import Struct, field, replace
from eval_gate.text.command_template import CommandTemplate, quote_for_shell
from eval_gate.text.escape import format_count, to_one_line
from eval_gate.text.redaction import Redactor

DEFAULT_BUDGET_S: Final = 600.0
DEFAULT_BUDGET: Final = RerunBudget(seconds=DEFAULT_BUDGET_S)
"""Default budget, and maximum time of a command if the budget has no time."""
_MAX_MESSAGE: Final = 300
_EMPTY_EXECUTION: Final = TrialRecord(
    eval_file="",
    case_id="",
    trial=0,
    fingerprint="",
    status=Status.ERROR,
    attempts=1,
    error_kind=ErrorKind.EVALUATION_ERROR,
)
"""An execution without a result for a case: it counts for the budget, and not for the target."""
_EMPTY_TRIAL: Final = build_trial(_EMPTY_EXECUTION)


class RerunSpending:
    """Budget of all re-runs, including those with the base agent."""

    def __init__(self, config: RunConfig) -> None:
        setting = config.limits.rerun_budget
        budget = DEFAULT_BUDGET if setting is None else parse_rerun_budget(setting)
        self.allowance = RerunAllowance(budget)
        self.until = time.monotonic() + (budget.seconds or DEFAULT_BUDGET_S)

    def take(self, count: int) -> bool:
        """Whether `count` more may begin."""
        return self.allowance.try_begin(count) and time.monotonic() < self.until


class _SuspectedCase(Struct):
    row: ResultRow
    rows: list[ResultRow] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)


class ToolReruns:
    """Re-runs suspected cases while a result could decide. Raises GateError if it needs root in a workflow."""

    def __init__(
        self,
        session: Session,
        results: ExternalResults,
        reruns: Reruns,
        doubtful: Sequence[CaseKey],
        spending: RerunSpending,
    ) -> None:
        command = session.config.results.rerun_command
        assert command is not None
        self._tool = ToolCommand(session, results, command, "the command for re-runs", spending.until)
        self._confirm = session.max_reruns
        self._reruns = reruns
        self._doubtful = doubtful
        self._spending = spending
        self._notes: dict[str, None] = {}
        self._spent = False
        rows = {key: results.cases[key][0] for key in doubtful}
        self._cases = {key: _SuspectedCase(row) for key, row in rows.items() if self._can_name(row)}
        self._waiting = list(self._cases)

    @property
    def rows(self) -> Mapping[CaseKey, Sequence[ResultRow]]:
        """What the re-runs brought, by case."""
        return {key: one.rows for key, one in self._cases.items()}

    @property
    def ends(self) -> Mapping[CaseKey, RerunStopReason]:
        """Reason why each case has no further re-run."""
        ends = {key: self._reruns.get_rerun_end(key, one.trials) for key, one in self._cases.items()}
        if self._spent:
            other_ends = {RerunStopReason.RUN_STOPPED: RerunStopReason.BUDGET_USED}
            ends = {key: other_ends.get(end, end) for key, end in ends.items()}
        return dict.fromkeys(self._doubtful, RerunStopReason.NOT_REPEATABLE) | ends

    @property
    def notes(self) -> tuple[str, ...]:
        """Problems, in sentences."""
        return tuple(dict.fromkeys((*self._tool.notes, *self._notes)))

    async def rerun_suspects(self) -> None:
        """Re-run suspects until each is decided or the budget is used."""
        while self._waiting and (turn := self._reruns.select_next(self._waiting)):
            if not await self._rerun_until_decided({key: self._cases[key] for key in turn}):
                break
            self._waiting = [key for key in self._waiting if key not in set(turn)]

    async def _rerun_until_decided(self, cases: Mapping[CaseKey, _SuspectedCase]) -> bool:
        """Re-run these until each is decided; return false if no further re-run is possible."""
        reruns, allowance = self._reruns, self._spending.allowance
        while open_ := {key: one for key, one in cases.items() if reruns.should_rerun(key, one.trials)}:
            if (remaining := allowance.remaining) is not None:  # few re-runs are left: decide one case after the other
                open_ = dict(list(open_.items())[: max(remaining // max(self._confirm, 1), 1)])
            if not self._spending.take(len(open_)):
                self._spent = True
                new = all(key in reruns.new_cases for key in open_)
                short = "new case ran as often as configured" if new else "suspected regression was decided"
                self._notes[f"the re-run budget was used up before every {short}"] = None
                return False
            await self._run_round(open_)
            if self._tool.broke is not None:  # a command without results once is not run again
                return False
        return True

    def _can_name(self, row: ResultRow) -> bool:
        if self._tool.can_name(row):
            return True
        self._notes[f'"{to_one_line(row.id, 80)}" cannot be re-run: its name cannot be an argument of a command'] = None
        return False

    async def _run_round(self, cases: Mapping[CaseKey, _SuspectedCase]) -> None:
        rows_by_case = await self._tool.run_once({key: one.row for key, one in cases.items()})
        for key, one in cases.items():
            rows = rows_by_case[key]
            one.rows += rows
            self._spending.allowance.add_cost(sum(row.cost_usd or 0.0 for row in rows))
            one.trials += [build_trial(build_execution(row, 0)) for row in rows] or [_EMPTY_TRIAL]


class ToolBaseAgent:
    """Runs cases with the base agent through the tool's command if the gate would fail."""

    def __init__(self, session: Session, results: ExternalResults, spending: RerunSpending) -> None:
        choice = session.config.base_agent
        assert choice.command is not None
        self._config = session.config
        self._rows = {key: rows[0] for key, rows in results.cases.items()}
        self._tool = ToolCommand(session, results, choice.command, "the command for the base agent", spending.until)
        self._spending = spending
        self._target = TargetIdentity(
            name="base", provider=results.format.value, identity=choice.command_name or "command"
        )
        self._records: dict[CaseKey, list[TrialRecord]] = defaultdict(list)
        self._trouble: str | None = None
        self._usd: float | None = None
        self._has_run = False

    def attach_results(self, run: RunResult) -> RunResult:
        """Add the results of the base agent to the run."""
        cases = {
            key: replace(case, base_agent_trials=build_base_agent_trials(records, case))
            for key, case in run.iter_cases()
            if (records := self._records.get(key))
        }
        base_agent = BaseAgentSummary(target=self._target, problem=self._trouble, cost_usd=self._usd)
        return replace(run.replace_cases(cases), base_agent=base_agent)

    def attach_final_results(self, run: RunResult) -> RunResult:
        """Add the final results of the base agent to the run; nothing if no result was needed."""
        return self.attach_results(run) if self._has_run or self._trouble is not None else run

    async def clear_suspects(self, run: RunResult, reruns: Reruns) -> bool:
        """Run the base agent while it may turn a failed gate, and return whether it cleared a failure."""
        repeatable = frozenset(key for key, row in self._rows.items() if self._tool.can_name(row))
        has_run = False
        while await self._run_next(reruns.build_base_agent_request(self.attach_results(run), repeatable)):
            has_run = True
        return has_run and reruns.has_cleared_failures(self.attach_results(run))

    async def _run_next(self, cases: BaseAgentCases) -> bool:
        """Run each of these once, and return whether another round may follow."""
        self._trouble = self._trouble or cases.trouble
        if not cases.keys or self._trouble is not None or not self._may_begin(cases):
            return False
        self._has_run = True
        results = await self._tool.run_once({key: self._rows[key] for key in cases.keys})
        stored = await redact_rows(self._config, results)
        costs = [row.cost_usd for rows in results.values() for row in rows if row.cost_usd is not None]
        if costs:
            self._usd = (self._usd or 0.0) + sum(costs)
            self._spending.allowance.add_cost(sum(costs))
        for key in cases.keys:
            # one execution each, even if the command returned more
            records = self._records[key]
            records.append(build_execution(rows[0], len(records)) if (rows := stored.get(key)) else _EMPTY_EXECUTION)
        if self._tool.broke is not None:
            self._trouble = f"its command returned no results: {self._tool.broke[:_MAX_MESSAGE]}"
        return self._trouble is None

    def _may_begin(self, cases: BaseAgentCases) -> bool:
        needed, allowance = len(cases.keys) * cases.rounds, self._spending.allowance
        if (allowance.remaining is not None and allowance.remaining < needed) or not self._spending.take(
            len(cases.keys)
        ):
            more = format_count(needed, "more execution")
            self._trouble = f"the rerun-budget of {allowance.budget} is too small for {more}"
        return self._trouble is None


class ToolCommand:
    """Command of another tool, and its failures so far. Raises GateError if it would need root in a workflow."""

    def __init__(self, session: Session, results: ExternalResults, command: str, what: str, until: float) -> None:
        """`until`: the monotonic time at which it is ended, whatever it does."""
        self._command = command
        self._what = what
        self._until = until
        self._results = results
        self._root = session.context.root
        self._environment = filter_environment(session.context.environment, names=session.config.pass_env)
        self._withheld = WithheldVariables.from_environment(session.context.environment, self._environment)
        self._rules = build_score_rules(session.config)
        self._encoding = session.config.results.encoding
        self._redact = build_redactor(session.context)
        self.notes: dict[str, None] = dict.fromkeys(check_command_user(session.context.environment))
        self.broke: str | None = None
        """Why its last call returned no results; it is then not called again."""

    def can_name(self, row: ResultRow) -> bool:
        """Whether the command can name this case: a program may take some names for something else."""
        name = row.rerun_name or row.id
        option = name.startswith("-") and re.search(r"\{ids?\}", self._command)
        lines = "{ids_file}" in self._command and len(name.splitlines()) > 1
        return not (option or lines or "\0" in name)

    async def run_once(self, cases: Mapping[CaseKey, ResultRow]) -> Mapping[CaseKey, Sequence[ResultRow]]:
        """Execute each of these cases once more; a case without a result gets no rows."""
        by_name: dict[CaseKey, list[ResultRow]] = {}
        rows = list(cases.values())
        for part in [[row] for row in rows] if "{id}" in self._command else [rows]:  # it takes one name
            for row in await self._run_call(part):
                if row.status is not Status.SKIPPED:  # a runner's filter leaves what it does not run as skipped
                    by_name.setdefault(row.key, []).append(row)
        by_content = self._group_by_content(by_name)
        by_case = {
            key: by_name.get(key) or by_content.get((key.suite, row.content)) or [] for key, row in cases.items()
        }
        if self.broke is None and not any(by_case.values()):
            self._note_failure(
                f"its results have none of the requested cases, such as {self._describe_missing(next(iter(cases)))}"
            )
        return by_case

    def _describe_missing(self, key: CaseKey) -> str:
        """Name a missing case, with the folder that its matrix leg needs."""
        leg = self._results.legs.get(key.suite)
        if leg is None or "{output}" not in self._command:
            return key.case_id
        return f"{key.case_id} of {leg}: write the results of {leg} to {{output}}/{leg}"

    def _group_by_content(
        self, by_name: Mapping[CaseKey, list[ResultRow]]
    ) -> dict[tuple[str, str | None], list[ResultRow]]:
        """Group rows with unknown names by suite and content: some tools shorten the name of a case that runs alone."""
        cases = self._results.cases
        asks = Counter((key.suite, rows[0].content) for key, rows in cases.items())
        unmatched = {(key.suite, rows[0].content): rows for key, rows in by_name.items() if key not in cases}
        return {content: rows for content, rows in unmatched.items() if content[1] is not None and asks[content] == 1}

    async def _run_call(self, rows: Sequence[ResultRow]) -> list[ResultRow]:
        """Run the command once for these rows, and return the rows of its results."""
        try:
            with open_private_folder("eval-gate-again-", self._root) as folder:
                return await self._run_call_in(folder, [row.rerun_name or row.id for row in rows])
        except ProcessError as error:
            longest = error.refusal is StartRefusal.TOO_LONG
            return self._note_failure(f"{error.message}: use {{ids_file}} in it" if longest else error.message)

    async def _run_call_in(self, folder: PrivateFolder, names: Sequence[str]) -> list[ResultRow]:
        output = folder.path / f"again{Path(self._results.files[0]).suffix}"
        listed = folder.write("ids.txt", "".join(f"{name}\n" for name in names).encode())
        old_times = self._read_write_times()
        process = await run(
            Command(
                _fill_command(self._command, names, listed, output),
                cwd=self._root,
                environment=self._environment,
                timeout_s=max(self._until - time.monotonic(), 1.0),
                mask=self._redact.mask_bytes,
            )
        )
        if process.timed_out:
            return self._note_failure("it was stopped when the re-run budget was used up")
        elsewhere = "{output}" not in self._command
        new_times = self._read_write_times()
        rewritten = [place for place in self._results.files if old_times.get(place) != new_times.get(place)]
        if elsewhere and not rewritten:  # the files are still those of the suspects
            return self._note_failure(
                f"it {process.ending} and did not write {self._results.files[0]} again: use {{output}} in it"
            )
        prefixes = {one.path: one.prefix for one in self._results.paths}
        shared = prefixes[self._results.files[0]] if len(set(prefixes.values())) == 1 else ""
        places = [ResultsPath(one, prefixes[one]) for one in rewritten]
        if not elsewhere:
            legs = [leg for leg in dict.fromkeys(self._results.legs.values()) if (output / leg).is_dir()]
            places = [ResultsPath(str(output / leg), leg) for leg in legs]
            places = places or [ResultsPath(str(output), shared)]
        try:
            if output.is_symlink():
                raise ProcessError("its results file is a link")
            results_format, encoding = self._results.format, self._encoding
            return list(load_external_results(places, results_format, self._rules, self._redact, encoding).rows)
        except GateError as error:
            # an exit code for failing cases is no problem
            text = process.stderr.to_text(_MAX_MESSAGE).strip() or "; ".join(one.message for one in error.problems)
            hint = self._withheld.find_hint(self._command, process.stderr.to_text())
            return self._note_failure(f"it {process.ending} and wrote no results: {text}{f' ({hint})' if hint else ''}")

    def _read_write_times(self) -> dict[str, int]:
        """Read when each results file or folder was written last."""
        return {name: Path(name).stat().st_mtime_ns for name in self._results.files if Path(name).exists()}

    def _note_failure(self, why: str) -> list[ResultRow]:
        why = " ".join(why.split())
        self.notes[f"{self._what} returned no results: {why}"] = None
        self.broke = why
        return []


def build_redactor(context: RunContext) -> Redactor:
    """Build a redactor of the secrets in this environment, which a tool that got them may have written down."""
    return Redactor((*context.secrets, *find_secrets(context.environment)))


def _fill_command(command: str, names: Sequence[str], listed: Path, output: Path) -> str:
    """Fill in the command as a line for the shell, with every name quoted, whatever it contains."""
    return CommandTemplate.from_rerun_command(command).render(
        {
            "ids": " ".join(map(quote_for_shell, names)),
            "id": quote_for_shell(names[0]),
            "ids_regex": quote_for_shell(f"^({'|'.join(map(_escape_pattern, names))})$"),
            "ids_file": shlex.quote(str(listed)),
            "output": shlex.quote(str(output)),
        }
    )


def _escape_pattern(name: str) -> str:
    """Escape a name as a pattern that JavaScript and Python read in the same way."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", name)
