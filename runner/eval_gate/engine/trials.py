"""Executes one trial of one case: request, evaluation, record; also requests in batches."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, NamedTuple

from eval_gate.config.settings import RunLimits
from eval_gate.engine.attempts import has_veto, join_attempts, needs_attempt
from eval_gate.engine.case_workspaces import CaseWorkspaces, OpenHooks
from eval_gate.engine.conversations import (
    BudgetUsedError,
    ConversationServices,
    LedConversation,
)
from eval_gate.engine.hooks import UnreachableAgentError
from eval_gate.engine.journal import TrialKey, TrialRecord
from eval_gate.engine.rerun_policy import RerunSpacing
from eval_gate.engine.retention import MAX_ERROR, add_turns, build_details
from eval_gate.engine.run_plan import ExecutionFingerprints, RunPlan
from eval_gate.engine.worker_pool import await_unless_stopped, yield_slot
from eval_gate.engine.workspaces import WorkspaceArtifacts
from eval_gate.errors import GateError
from eval_gate.evaluators.aggregation import score_case
from eval_gate.evaluators.base import CaseScore, EvaluationContext, EvaluatorError, WorkspaceState
from eval_gate.evaluators.conversation import score_conversation, score_turn
from eval_gate.evaluators.json_fields import collect_fields
from eval_gate.evaluators.tool_forge.table import has_tool_assertions
from eval_gate.model.case import AttemptRule, CaseKey, CaseTurn, EvalCase
from eval_gate.model.conversation import FileEntry, Message, Response
from eval_gate.model.execution import NO_DETAILS, ErrorCause, ErrorKind, Status
from eval_gate.model.specs.agent_evals import ABOUT_FILES
from eval_gate.model.usage import Usage, add_up
from eval_gate.results.detail_truncation import truncate_fields, truncate_judge_prompts
from eval_gate.results.masking import MARGIN
from eval_gate.struct import FrozenStruct, Struct, field, replace
from eval_gate.targets.base import BatchTarget, Request, Target, TargetError, TargetFault
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.deadline import RetryState, track_case_limit
from eval_gate.targets.isolation import isolate_execution
from eval_gate.text.escape import to_one_line, truncate_middle
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.trace_addresses import clean_trace
from eval_gate.text.untrusted.surrogates import to_well_formed

MAX_EXCEPTION_TEXT = 300
"""Characters of an exception's text: it may contain the whole response."""
DEFECT_LOGGER: Final = logging.getLogger("eval-gate.defects")
_CHANGES_NAME: Final = "changes.diff"
"""Name of the workspace changes among the artifacts of a failing case."""
_MAX_CASE_ID: Final = 200
"""Characters of the id of another case."""
_TIMEOUT_HINT = "increase timeoutMs if it needs longer"
_CHANGE_HINT: Final = "let nothing write beside graders and hooks during a run, or let git ignore such files"
_MAX_FILE_NAME: Final = 300
"""Characters of the name of a changed file."""


class NoResponseError(Exception):
    """No connection to the target, or no response in time; carries the result of the trial."""

    def __init__(self, trial_record: TrialRecord) -> None:
        super().__init__(trial_record.error)
        self.record = trial_record


class TrialJob(NamedTuple):
    """One trial to execute. Trials of a case are numbered from 0."""

    case: EvalCase
    trial: int
    preceding_jobs: tuple[TrialJob, ...] = ()
    """Executions of earlier cases in the same folder, in order: a re-run of a case that needs their files repeats
    them."""
    preparatory: bool = False
    """Whether the execution only prepares a later one."""

    @property
    def key(self) -> TrialKey:
        """Case and number of the trial, unique in a run."""
        return self.case.key, self.trial


class TrialServices(FrozenStruct):
    """Plan and tools that the trials of a run share."""

    plan: RunPlan
    patterns: PatternMatcher
    workspaces: CaseWorkspaces
    fingerprints: ExecutionFingerprints
    artifacts: WorkspaceArtifacts | None = None
    """Stores workspace artifacts of failing cases; None if they are not stored."""
    can_continue: Callable[[TrialKey, Target, float], bool] = lambda _key, _target, _usd: True
    """Whether the run can afford a further turn of an execution to which the target responded at this cost (USD)."""
    sessions: dict[int, dict[str, ConversationSession]] = field(default_factory=dict)
    """Sessions of all conversations of the run, by target and by each id that they had."""

    def require_unchanged_programs(self, case: EvalCase) -> None:
        """Check that no file which a program of the case can load was written to since the run was planned.

        Raises EvaluatorError: such a case must not be scored by other files than those that are compared.
        """
        keys = self._list_programs(case)
        changed = self.plan.program_files.find_change(keys) if self.plan.program_files and keys else None
        if changed is not None:
            raise EvaluatorError(
                f"{to_one_line(changed, _MAX_FILE_NAME)} changed while the run was under way, so the case is not "
                "scored: a grader or hook can load this file",
                hint=_CHANGE_HINT,
            )

    async def check_programs(self, case: EvalCase) -> None:
        """Check the programs as `require_unchanged_programs`, in a thread of its own; most cases have none."""
        if self._list_programs(case):
            await asyncio.to_thread(self.require_unchanged_programs, case)

    def _list_programs(self, case: EvalCase) -> tuple[str, ...]:
        parts = self.plan.setup_fingerprints.get(case.key)
        return parts.programs + parts.preparing_programs if parts else ()

    def build_context(
        self, case: EvalCase, response: Response, workspace: WorkspaceState | None = None
    ) -> EvaluationContext:
        """Build the context in which evaluators score this response to this case."""
        plan = self.plan
        return EvaluationContext(
            case,
            response,
            plan.tokens,
            self.patterns,
            workspace=workspace,
            judge=plan.judges.find_default(case),
            judges=plan.judges.get_named(case.suite),
            environment=plan.environment,
            mask=plan.redactor.mask_bytes,
            withheld_variables=plan.withheld,
        )


class TrialRunner:
    """Runner of trials against one target. Errors of targets and judges become trial results."""

    def __init__(self, target: Target, shared: TrialServices, spacing: RerunSpacing | None = None) -> None:
        """`spacing` keeps re-runs apart; None for the base agent, which runs as soon as it is needed."""
        self._target = target
        self._limits = shared.plan.limits
        self._shared = shared
        self._spacing = spacing
        self._sessions = shared.sessions.setdefault(id(target), {})

    async def run(self, job: TrialJob, batch_response: Response | None = None) -> TrialRecord:
        """Request a response, unless the batch has one, and score it.

        If this program fails on a response, only its case gets an evaluation error. Raises NoResponseError, and
        BudgetUsedError if the budget of the run does not allow a further turn of a conversation.
        """
        if self._spacing is not None and self._count_reruns(job):
            await self._wait_between_reruns(job, self._spacing)
        started = time.perf_counter()
        try:
            if job.case.attempt_rule is not None:
                return await self._run_attempts(job, job.case.attempt_rule)
            return await self._run_trial(job, batch_response)
        except (NoResponseError, BudgetUsedError, GateError):  # these are meant for the run
            raise
        # a failure of this program on one response must not end the run of all other cases
        except Exception as error:  # noqa: BLE001
            return build_defect_record(self._build_record(job, _measure_ms(started)), error)
        finally:
            if self._spacing is not None:
                self._spacing.note_end(job.case.key)

    def _count_reruns(self, job: TrialJob) -> int:
        """Return which re-run of its case it is, from 1; 0 for a trial."""
        return max(job.trial + 1 - self._shared.plan.count_trials(job.case), 0)

    async def _wait_between_reruns(self, job: TrialJob, spacing: RerunSpacing) -> None:
        """Let other cases run between two executions of a case, because a short outage must not decide it."""
        if spacing.get_interval_s(job.case.key):
            await spacing.wait(job.case.key)
        # a re-run budget that ends amid all cases would decide none of them
        elif self._count_reruns(job) > 1 and self._limits.rerun_budget is None:
            await yield_slot()

    async def _run_attempts(self, job: TrialJob, rule: AttemptRule) -> TrialRecord:
        """Make the attempts of one execution, and join them. Raises NoResponseError if none of them was scored."""
        records: list[TrialRecord] = []
        no_response: NoResponseError | None = None
        while needs_attempt(rule, records):
            try:
                records.append(await self._run_trial(job, None, records))
            except NoResponseError as error:
                no_response = error
                records.append(error.record)
            except BudgetUsedError as error:
                raise BudgetUsedError(error.turn, error.cost_usd + _sum_costs(records)) from error
        joined = join_attempts(rule, job.case.pass_score, records)
        missed_call = next((one for one in records if one.error_cause is ErrorCause.MODEL_CALL_MISSING), None)
        if missed_call is not None:  # no other attempt outweighs it
            return _add_missing_call(joined, missed_call.error or "")
        if no_response is not None and joined.error_kind is no_response.record.error_kind:
            raise NoResponseError(joined)
        return joined

    async def _run_trial(
        self, job: TrialJob, batch_response: Response | None, earlier_attempts: Sequence[TrialRecord] = ()
    ) -> TrialRecord:
        """Execute a case once; with a proxy of model calls, one without an answer is an evaluation error."""
        execution_id, proxy = secrets.token_hex(16), self._shared.plan.model_proxy
        if proxy is None:
            return await self._execute(job, execution_id, batch_response, earlier_attempts)
        await proxy.begin(execution_id)
        no_response: NoResponseError | None = None
        try:
            record = await self._execute(job, execution_id, batch_response, earlier_attempts)
        except NoResponseError as error:
            no_response, record = error, error.record
        finally:
            calls = await proxy.end(execution_id)
        if calls.miss is not None:
            return _add_missing_call(record, self._shared.plan.redactor(calls.miss))
        if no_response is not None:
            raise no_response
        is_replayed = calls.calls > 0 and not calls.live_calls
        return replace(record, details=replace(record.details, replayed=True)) if is_replayed else record

    async def _execute(
        self,
        job: TrialJob,
        execution_id: str,
        batch_response: Response | None,
        earlier_attempts: Sequence[TrialRecord],
    ) -> TrialRecord:
        proxy = self._shared.plan.model_proxy
        try:
            if job.case.workspace is not None or job.case.hooks.list_hooks():
                # without a thread: cases that share a workspace get it in the order of their requests
                self._shared.require_unchanged_programs(job.case)
            is_first = job.trial == len(earlier_attempts) == 0
            with nullcontext() if is_first else isolate_execution():
                async with self._shared.workspaces.open_workspace(job.case, job.trial, self._target) as workspace:
                    request = build_request(job, self._shared.plan.run_id, len(earlier_attempts))
                    rerun = self._count_reruns(job)
                    request = replace(request, rerun=rerun, workspace=None if workspace is None else workspace.path)
                    variables = {} if proxy is None else proxy.build_variables(execution_id)
                    request = replace(request, execution_id=execution_id, variables=variables)
                    if job.case.conversation is not None:
                        return await self._run_conversation(job, request, workspace, _sum_costs(earlier_attempts))
                    return await self._run_in_workspace(job, request, batch_response, workspace)
        except EvaluatorError as error:
            record = _add_evaluation_error(self._build_record(job, 0.0), error)
            if isinstance(error, UnreachableAgentError):
                raise NoResponseError(record) from error
            return record

    async def _run_in_workspace(
        self, job: TrialJob, request: Request, batch_response: Response | None, workspace: OpenHooks | None
    ) -> TrialRecord:
        started = time.perf_counter()
        try:
            response = batch_response or await self._request_response(request, self._get_timeout_ms(job.case))
        except TargetError as error:
            return _require_contact(_add_target_error(self._build_record(job, _measure_ms(started)), error), error)
        return await self._score_response(job, response, workspace)

    async def _run_conversation(
        self, job: TrialJob, request: Request, workspace: OpenHooks | None, spent_usd: float
    ) -> TrialRecord:
        """Run all turns of a conversation. `spent_usd` is the cost of earlier attempts of the same execution."""
        services = self._build_conversation_services(job, workspace, spent_usd)
        conversation = LedConversation(request, job.case, services)
        await conversation.lead()
        error = conversation.error
        if error is None:
            return await self._score_response(job, conversation.response, workspace, conversation)
        number = conversation.failed_turn
        record = replace(self._build_response_record(job, conversation.response, conversation), failed_turn=number)
        if isinstance(error, EvaluatorError):
            return _add_evaluation_error(record, error.add_prefix(f"turn {number}"))
        message = truncate_middle(f"turn {number}: {error.message}", MAX_ERROR)
        duration_ms = round(conversation.request_ms, 3)
        failed = replace(_add_target_error(record, error), duration_ms=duration_ms, error=message)
        return _require_contact(failed, error)

    def _build_conversation_services(
        self, job: TrialJob, workspace: OpenHooks | None, spent_usd: float
    ) -> ConversationServices:
        shared, target = self._shared, self._target
        player = shared.plan.judges.find_user(job.case)

        async def score(response: Response, turn: CaseTurn, history: Sequence[Message]) -> CaseScore:
            if not turn.evaluators:
                return await score_turn(shared.build_context(job.case, response), turn, history)
            await shared.check_programs(job.case)
            state = None if workspace is None else await workspace.read_state()
            case_score = await score_turn(shared.build_context(job.case, response, state), turn, history)
            await shared.check_programs(job.case)
            return case_score

        return ConversationServices(
            send=partial(self._request_response, timeout_ms=self._get_timeout_ms(job.case)),
            score_turn=score,
            move_user=None if player is None else player.move,
            retry_policy=target.retry_policy,
            remembers_turns=target.remembers_turns,
            can_continue=lambda usd: shared.can_continue(job.key, target, spent_usd + usd),
            sessions=self._sessions,
        )

    async def _score_response(
        self,
        job: TrialJob,
        response: Response,
        workspace: OpenHooks | None,
        conversation: LedConversation | None = None,
    ) -> TrialRecord:
        """Score a response, or a conversation by the response that joins its turns, and build the record."""
        if response.dry_run:
            message = "; ".join(("dry run: no request was sent", *response.warnings))
            begun = self._build_record(job, response.duration_ms)
            return replace(begun, status=Status.SKIPPED, error=message[:MAX_ERROR])
        try:
            await self._shared.check_programs(job.case)
            state = None if workspace is None else await workspace.end_case(job.case)
            context = self._shared.build_context(job.case, response, state)
            if conversation is None:
                case_score = await score_case(context)
            else:
                turns = [turn.score for turn in conversation.turns]
                case_score = await score_conversation(context, turns, conversation.history)
            await self._shared.check_programs(job.case)
        except EvaluatorError as error:
            return _add_evaluation_error(self._build_response_record(job, response, conversation), error)
        unscored = self._build_response_record(job, response, conversation, case_score.skipped_tokens)
        scored = _add_scores(unscored, case_score)
        if scored.status is Status.FAILED and conversation is not None:
            scored = replace(scored, failed_turn=conversation.first_failure)
        if job.case.pass_score is not None and scored.status is Status.FAILED:
            scored = replace(scored, vetoed=True)  # the policy's pass score must not pass it
        files = response.files or ()
        if state is not None and state.changes is not None:
            files = (FileEntry(path=_CHANGES_NAME, kind="file", text=state.changes),)
        return await self._store_artifacts(scored, files)

    async def _store_artifacts(self, trial_record: TrialRecord, files: Sequence[FileEntry]) -> TrialRecord:
        """Store the workspace artifacts of a failing trial, and add a warning that names the file."""
        workspace_artifacts = self._shared.artifacts
        if (
            workspace_artifacts is None
            or trial_record.status is not Status.FAILED
            or trial_record.preparatory
            or not files
        ):
            return trial_record
        warning = await workspace_artifacts.store(trial_record, files, self._shared.patterns)
        return replace(trial_record, warnings=(*trial_record.warnings, warning)) if warning else trial_record

    async def _request_response(self, request: Request, timeout_ms: float | None) -> Response:
        """Request the target's response within `timeout_ms`; None means no limit. Raises TargetError."""
        retrying = RetryState()
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000) as limit:
                with track_case_limit(limit, retrying):
                    return await self._target.respond(request)
        except TimeoutError as error:
            if retrying.failure is not None:  # only the repeated request timed out
                raise _build_retry_timeout(retrying.failure, timeout_ms) from error
            # the contract's words; whether the late response would have passed is unknown
            message = f"timeout: no response within {timeout_ms} ms"
            trace_id = request.execution_id if self._target.sends_traceparent else None
            raise TargetError(message, fault=TargetFault.LATE, hint=_TIMEOUT_HINT, trace_id=trace_id) from error

    def _get_timeout_ms(self, case: EvalCase) -> float | None:
        """Return the timeout of the case, else that of the run unless the target has one of its own."""
        if case.timeout_ms is not None:
            return case.timeout_ms
        return None if self._target.timeout_ms is not None else self._limits.timeout_ms

    def _build_record(self, job: TrialJob, duration_ms: float) -> TrialRecord:
        """Build the record of an execution that has no response yet."""
        return TrialRecord(
            eval_file=job.case.suite,
            case_id=job.case.id,
            trial=job.trial,
            fingerprint=self._shared.fingerprints.compute(job.case),
            status=Status.ERROR,
            duration_ms=duration_ms,
            attempts=1,
            preparatory=job.preparatory,
        )

    def build_unmade_record(self, job: TrialJob, failure: TrialRecord) -> TrialRecord:
        """Build the record of a re-run that is not made because the agent was unreachable for an earlier case."""
        message = f"not re-run: the agent was unreachable in {failure.case_id[:_MAX_CASE_ID]}, which runs before it"
        return replace(
            self._build_record(job, 0.0),
            attempts=0,
            error=message,
            error_kind=ErrorKind.AGENT_UNREACHABLE,
            error_cause=failure.error_cause,
            error_hint=failure.error_hint,
        )

    def _build_response_record(
        self,
        job: TrialJob,
        response: Response,
        conversation: LedConversation | None,
        skipped_tokens: tuple[str, ...] = (),
    ) -> TrialRecord:
        """Build the record of an execution with its response, before it is scored."""
        calls_unknown = (
            response.tool_calls_known is None
            and not response.tool_calls
            and has_tool_assertions(job.case.all_evaluators)
        )
        margin = MARGIN if self._shared.plan.patterns else 0
        details = build_details(response, margin, skipped_tokens)
        fields = collect_fields(job.case.evaluators, response, with_body=job.case.keeps_body)
        record = replace(
            self._build_record(job, round(response.duration_ms, 3)),
            attempts=response.attempts,
            calls_listed=bool(response.tool_calls) or response.tool_calls_known,
            missing_calls=response.tool_calls_location if calls_unknown else None,
            details=replace(details, fields=truncate_fields(fields, margin)),
            usage=response.usage,
            cost_usd=response.cost_usd,
            warnings=response.warnings,
        )
        if conversation is None:
            return record
        usage, cost_usd = conversation.target_costs
        judge_usage, judge_cost_usd = conversation.judge_costs
        return replace(
            record,
            attempts=conversation.attempts,
            calls_listed=conversation.lists_calls or record.calls_listed,
            details=add_turns(record.details if conversation.turns else NO_DETAILS, conversation, margin),
            usage=usage,
            cost_usd=cost_usd,
            judge_usage=judge_usage,
            judge_cost_usd=judge_cost_usd,
            warnings=record.warnings + conversation.warnings,
        )


def _add_missing_call(trial_record: TrialRecord, miss: str) -> TrialRecord:
    """Turn an execution whose agent missed a model call into an evaluation error, whatever it responded."""
    return replace(
        trial_record,
        status=Status.ERROR,
        score=0.0,
        evaluator_results=(),
        vetoed=False,
        timed_out=False,
        failed_turn=None,
        http_status=None,
        error=truncate_middle(miss, MAX_ERROR),
        error_hint=None,
        error_kind=ErrorKind.EVALUATION_ERROR,
        error_cause=ErrorCause.MODEL_CALL_MISSING,
    )


def _sum_costs(records: Sequence[TrialRecord]) -> float:
    return sum(record.total_cost_usd for record in records)


def _require_contact(trial_record: TrialRecord, error: TargetError) -> TrialRecord:
    """Return the record of an error, unless the target was not reached or did not respond: that is raised."""
    if error.fault in {TargetFault.UNREACHABLE, TargetFault.LATE}:
        raise NoResponseError(trial_record) from error
    return trial_record


def _add_target_error(trial_record: TrialRecord, error: TargetError) -> TrialRecord:
    trace = None if error.fault is TargetFault.UNREACHABLE else clean_trace(error.trace_id)
    return replace(
        trial_record,
        error=truncate_middle(error.message, MAX_ERROR),
        error_kind=error.error_kind,
        error_cause=error.cause,
        error_hint=error.hint and error.hint[:MAX_ERROR],
        http_status=error.status,
        timed_out=error.timed_out,
        details=replace(trial_record.details, trace=trace or trial_record.details.trace),
    )


def _add_scores(trial_record: TrialRecord, case_score: CaseScore) -> TrialRecord:
    results = truncate_judge_prompts(case_score.results)
    return replace(
        trial_record,
        status=Status.PASSED if case_score.passed else Status.FAILED,
        score=case_score.score,
        assertions_run=case_score.assertions_run,
        assertions_skipped=case_score.assertions_skipped,
        error=case_score.error and case_score.error[:MAX_ERROR],
        vetoed=has_veto(results),
        evaluator_results=results,
        trace_summary=case_score.trace_summary,
        judge_usage=Usage.add_up((trial_record.judge_usage, case_score.judge_usage)),
        judge_cost_usd=add_up((trial_record.judge_cost_usd, case_score.judge_cost_usd)),
        warnings=trial_record.warnings + case_score.warnings,
    )


def build_defect_record(trial_record: TrialRecord, error: Exception) -> TrialRecord:
    """Build an evaluation error for a failure of this program, with a traceback for `DEFECT_LOGGER`."""
    DEFECT_LOGGER.info("a bug in eval-gate, in case %s", trial_record.case_id, exc_info=error)
    name = type(error).__name__
    message = f"eval-gate failed on this case: {name}: {to_well_formed(str(error))[:MAX_EXCEPTION_TEXT]}".rstrip(": ")
    return TrialRecord(
        eval_file=trial_record.eval_file,
        case_id=trial_record.case_id,
        trial=trial_record.trial,
        fingerprint=trial_record.fingerprint,
        status=Status.ERROR,
        duration_ms=trial_record.duration_ms,
        attempts=1,
        preparatory=trial_record.preparatory,
        error=f"{message} (a bug in eval-gate: --verbose shows where)",
        error_kind=ErrorKind.EVALUATION_ERROR,
        error_cause=ErrorCause.INTERNAL_ERROR,
    )


def _build_retry_timeout(error: TargetError, timeout_ms: float | None) -> TargetError:
    message = f"{error.message}; no time left to retry within {timeout_ms} ms"
    end = TargetError(message, fault=error.fault, status=error.status, hint=error.hint, known_cause=error.known_cause)
    end.trace_id = error.trace_id
    return end


def _add_evaluation_error(trial_record: TrialRecord, error: EvaluatorError) -> TrialRecord:
    return replace(
        trial_record,
        error=truncate_middle(str(error), MAX_ERROR),
        error_kind=error.error_kind,
        error_cause=error.error_cause,
        error_hint=error.hint,
        judge_usage=Usage.add_up((trial_record.judge_usage, error.usage)),
        judge_cost_usd=add_up((trial_record.judge_cost_usd, error.cost_usd)),
    )


def build_request(job: TrialJob, run_id: str = "", attempt: int = 0) -> Request:
    """Build the request that a target receives for this case.

    Attempts of one execution are numbered as if each were an execution, because a recording, a seed or a placeholder
    goes by that number.
    """
    case = job.case
    return Request(
        case.id,
        case.messages,
        job.trial if case.attempt_rule is None else job.trial * case.attempt_rule.count + attempt,
        stubs=case.stubs,
        max_turns=case.max_turns,
        eval_file=case.suite,
        brief=case.brief,
        agent=case.agent,
        run_id=run_id,
        inspected_paths=tuple([spec.path for spec in case.all_evaluators if isinstance(spec, ABOUT_FILES)]),
    )


def _measure_ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


class BatchResponses(Struct):
    """Responses of batch calls. A job without one is sent by itself; `notices` say why."""

    responses: dict[TrialKey, Response] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


async def request_batches(
    target: BatchTarget, jobs: Sequence[TrialJob], limits: RunLimits, stop: asyncio.Event
) -> BatchResponses:
    """Make one call for each eval file and trial. A failed call becomes a notice: a retry would cost as much."""
    groups: dict[tuple[str, int], list[TrialJob]] = defaultdict(list)
    for job in jobs:
        groups[job.case.suite, job.trial].append(job)
    batch = BatchResponses()
    for (suite, trial), group in groups.items():
        if stop.is_set():
            break
        try:
            responses = await await_unless_stopped(_request_batch(target, group, limits), stop) or {}
        except TargetError as error:
            batch.notices.append(
                f"the batch of {len(group)} cases of {suite} failed, so each case ran by itself: {error.message}"
            )
            continue
        batch.responses |= {(CaseKey(suite, case_id), trial): response for case_id, response in responses.items()}
    return batch


async def _request_batch(target: BatchTarget, group: Sequence[TrialJob], limits: RunLimits) -> Mapping[str, Response]:
    limit_s = None if target.timeout_ms is not None else limits.timeout_ms * len(group) / 1000
    requests = [build_request(job) for job in group]
    try:
        async with asyncio.timeout(limit_s):
            return await target.respond_batch(requests)
    except TimeoutError as error:
        raise TargetError(f"no response within {limit_s:g} s", fault=TargetFault.LATE) from error
