"""Run cases without their evaluators, and return what the target responded, for drafts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.config.selection import Selection
from eval_gate.config.settings import BaseAgentChoice, ResponseRetention, RubricMode, RunConfig
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import build_refusal_evaluator
from eval_gate.engine.journal import JOURNAL_NAME, TrialKey, TrialRecord, read_lines
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import ExitCode, GateError
from eval_gate.files.writing import remove_file
from eval_gate.model.case import Aggregation, CaseKey, EvalCase, EvalSuite, TurnAggregation
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.model.execution import Status, StoredCall, format_error
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.results.result_names import LATEST_NAME
from eval_gate.session.run import RunObserver, execute_plan, plan_run
from eval_gate.session.session import open_session
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.dotted_path import WHOLE_BODY
from eval_gate.text.redaction import Redactor

DRAFTS_FOLDER: Final = "drafts"
"""Folder below the results in which executions are kept until their drafts are written."""


class ObservedRun(FrozenStruct):
    """What a target responded to cases, and how the run ended."""

    observations: Mapping[CaseKey, Observation]
    """One observation for each case, in the order of the cases."""
    tools: tuple[ToolSpec, ...]
    redactor: Redactor
    """Knows every secret of the run."""
    run: RunResult
    folder: Path
    """Folder of the run, with its journal. The caller removes it."""
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended the run early, if one did."""


async def observe_cases(
    config: RunConfig,
    suites: Sequence[EvalSuite],
    context: RunContext,
    progress: RunObserver,
    *,
    judges_refusals: bool = False,
) -> ObservedRun:
    """Run the cases `limits.trials` times each, and return the responses. Nothing is compared or re-run.

    With `judges_refusals`, an LLM judge says of each response whether it refuses, if a judge is configured.

    Each finished execution is journalled, so that `context.resume` continues an interrupted run. Raises GateError
    before anything is requested.
    """
    require_responses(config)
    has_judge = judges_refusals and config.judge is not None
    bare = tuple(
        replace(suite, cases=tuple(_strip_case(case, asks_judge=has_judge) for case in suite.cases)) for suite in suites
    )
    context = replace(context, custom_suites=bare)
    session = open_session(_build_config(config), Selection(), context, NOT_REQUESTED)
    plan = await plan_run(session)
    tools, redactor, trials = plan.tools, plan.redactor, plan.limits.trials
    executed = await execute_plan(session, plan, progress)
    run = executed.take_result()
    folder = session.folder / run.run_id
    records = _read_records(folder / JOURNAL_NAME, trials)
    cases = [case for suite in bare for case in suite.cases]
    return ObservedRun(_build_observations(cases, records), tools, redactor, run, folder, executed.interrupted)


def require_responses(config: RunConfig) -> None:
    """Require that responses may be stored: drafts need them. Raises GateError `conflicting-settings`."""
    if config.limits.keep_responses is ResponseRetention.NONE:
        raise GateError(
            "conflicting-settings",
            "keepResponses is none, but drafts are made of responses",
            "allow it for this call: --keep-responses all",
        )


def _strip_case(case: EvalCase, *, asks_judge: bool) -> EvalCase:
    """Return the case without its evaluators; with one for a judge, a response passes if it refuses.

    All turns of a conversation are sent, and no judge is asked: a turn cannot have a rubric.
    """
    conversation = case.conversation and replace(
        case.conversation,
        turns=tuple(replace(turn, evaluators=()) for turn in case.conversation.turns),
        aggregation=TurnAggregation.FIRST_FAILURE,
        stop_score=None,
        all_evaluators=(),
    )
    asks = asks_judge and conversation is None
    return replace(
        case,
        conversation=conversation,
        evaluators=(build_refusal_evaluator(_get_prompt_text(case.messages)),) if asks else (),
        aggregation=Aggregation.ALL,
        draft=False,
        keeps_body=True,
        skip_reason=None,
    )


def _build_config(config: RunConfig) -> RunConfig:
    """Return the configuration without all that only scoring and comparing need."""
    return replace(
        config,
        base_agent=BaseAgentChoice(),
        rubric=RubricMode.ALWAYS,
        snapshot_enabled=False,
        policy=replace(config.policy, must_pass=(), reruns=0),
        limits=replace(config.limits, keep_responses=ResponseRetention.ALL),
        output_dir=str(Path(config.output_dir) / DRAFTS_FOLDER),
    )


def _read_records(journal: Path, trials: int) -> list[TrialRecord]:
    """Read the executions of the run; of several with one number the last one counts."""
    records: dict[TrialKey, TrialRecord] = {}
    for record, _ in read_lines(journal):
        if record.trial < trials and not record.preparatory:
            records[record.key] = record
    return sorted(records.values(), key=lambda record: record.trial)


def _build_observations(cases: Iterable[EvalCase], records: Sequence[TrialRecord]) -> dict[CaseKey, Observation]:
    """Build the observations; a response that lacks a list of tool calls made none only if another one has a list."""
    by_case: dict[CaseKey, list[TrialRecord]] = defaultdict(list)
    for record in records:
        by_case[record.case].append(record)
    lists = any(record.calls_listed for record in records)
    return {case.key: _build_observation(case, by_case[case.key], lists=lists) for case in cases}


def _build_observation(case: EvalCase, records: Sequence[TrialRecord], *, lists: bool) -> Observation:
    scored = [record for record in records if record.status.is_scored]
    own = Observation(
        question=_get_prompt_text(case.messages),
        responses=tuple(_build_response(record, lists=lists) for record in scored),
        refusals=tuple(record.status is Status.PASSED for record in scored if case.evaluators),
        earlier_messages=case.messages[:-1],
        errors=tuple(
            format_error(record.error, record.error_hint) for record in records if not record.status.is_scored
        ),
        location=case.location,
    )
    if case.conversation is None:
        return own
    by_turn = [_split_response(record, one) for record, one in zip(scored, own.responses, strict=True)]
    messages = [turn.message for turn in case.conversation.turns]
    if not messages and scored:  # a simulated user writes others each time
        return replace(own, question="\n\n".join(turn.message or "" for turn in scored[0].details.turns))
    turns = tuple(
        Observation(message, tuple(one[at] for one in by_turn), location=case.location)
        for at, message in enumerate(messages)
    )
    return replace(own, question=messages[-1] if messages else "", earlier_messages=case.messages, turns=turns)


def _split_response(record: TrialRecord, whole: Response) -> list[Response]:
    """Split the response of a conversation into those of its turns."""
    calls = iter(whole.tool_calls)
    return [
        replace(
            whole,
            text=turn.response or "",
            body=turn.fields.get(WHOLE_BODY),
            tool_calls=tuple(islice(calls, turn.calls)),
            conversation=(),
            duration_ms=turn.duration_ms,
        )
        for turn in record.details.turns
    ]


def _get_prompt_text(messages: Sequence[Message]) -> str:
    content = messages[-1].content if messages else ""
    return content if isinstance(content, str) else ""


def _build_response(record: TrialRecord, *, lists: bool) -> Response:
    details = record.details
    return Response(
        text=details.response or "",
        body=details.fields.get(WHOLE_BODY),
        model=details.model,
        tool_calls=tuple(map(_build_call, details.tool_calls)),
        conversation=details.conversation,
        max_turns_reached=details.max_turns_reached,
        tool_calls_known=lists if record.calls_listed is None else record.calls_listed,
        duration_ms=record.duration_ms,
    )


def _build_call(call: StoredCall) -> ToolCall:
    """Build a call of its stored form; arguments that are cut or no mapping are left out."""
    params = call.arguments if isinstance(call.arguments, dict) and "arguments" not in call.truncated_parts else {}
    return ToolCall(
        name=call.name, params=params, success=call.success, result=call.result, duration_ms=call.duration_ms
    )


def remove_run_folder(folder: Path) -> None:
    """Remove the folder of a run whose drafts are written, and folders left empty above. Raises GateError."""
    for file in folder.iterdir():
        remove_file(file)
    folder.rmdir()
    other_names = [one for one in folder.parent.iterdir() if one.name != LATEST_NAME]
    if not other_names:
        remove_file(folder.parent / LATEST_NAME)
        folder.parent.rmdir()
        if not any(folder.parent.parent.iterdir()):
            folder.parent.parent.rmdir()
