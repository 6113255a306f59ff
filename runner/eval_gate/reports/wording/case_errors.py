"""Wording for cases without a score: agent errors, unreachable agents and evaluation errors.

A failed case has none of these errors: it has a response, and the response is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from eval_gate.gate.reason_wording import ERROR_KIND_WORDS, format_error_kind_counts
from eval_gate.model.case import EvalMistake, MistakeKind
from eval_gate.model.execution import CALLS_UNKNOWN, ErrorCause, ErrorKind
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.text.escape import format_count, format_first_few
from eval_gate.text.quoting import capitalize_first

ERROR_KIND_ORDER: Final = (ErrorKind.AGENT_ERROR, ErrorKind.AGENT_UNREACHABLE, ErrorKind.EVALUATION_ERROR, None)
"""Order of error kinds: those that the change may cause first; None is an error without a recorded kind."""
EXPLANATIONS: Final = {
    ErrorKind.AGENT_ERROR: "the agent responded with an error, closed the connection, or timed out",
    ErrorKind.AGENT_UNREACHABLE: (
        "the agent accepted no connection, or it or its model provider refused access. This change is the cause only "
        "if it keeps the agent from starting, or ends it"
    ),
    ErrorKind.EVALUATION_ERROR: "an LLM judge, a grader or Eval Gate itself broke, so the response has no score",
    None: "the result does not say whether the agent or the evaluation failed",
}
_TOOL_BROKE: Final = "the tool could not evaluate these cases, so that nothing is known of the agent"
"""Explanation of evaluation errors in external results, which do not say what broke."""
_COUNT_PHRASES: Final = ERROR_KIND_WORDS | {
    ErrorKind.AGENT_UNREACHABLE: ("case with the agent unreachable", "cases with the agent unreachable"),
    None: ("case without a score", "cases without a score"),
}
TITLES: Final = {kind: tuple(map(capitalize_first, words)) for kind, words in _COUNT_PHRASES.items()} | {
    ErrorKind.AGENT_UNREACHABLE: ("Unreachable agent", "Unreachable agent")
}
"""Titles of one such case, and of several."""
_MAX_NAMED: Final = 3
"""Cases that are named with a mistake that they share."""
CALLS_UNKNOWN_EXPLANATION: Final = f"{CALLS_UNKNOWN}, because the agent does not list its tool calls"

_EXPLANATIONS_BY_CAUSE: Final[Mapping[ErrorCause | None, str]] = {
    ErrorCause.CALLS_UNKNOWN: CALLS_UNKNOWN_EXPLANATION,
    ErrorCause.HOOK_FAILED: "a command or request before or after the cases failed, which says nothing of the agent",
    ErrorCause.MODEL_CALL_MISSING: "the agent made a model call that got no answer from the recording",
    ErrorCause.USER_FAILED: "the model that plays the simulated user gave no message, so the conversation broke off",
}
"""Explanations of causes that say more than the kind of the error."""


def has_unknown_calls(case: CaseResult | None) -> bool:
    """Whether a case has no score because it is unknown which tools were called."""
    return case is not None and case.error_cause is ErrorCause.CALLS_UNKNOWN


def describe_mistakes(run: RunResult) -> tuple[str, ...]:
    """Describe each mistake in eval files once: its place, its cases and how to fix it."""
    cases: dict[EvalMistake, list[str]] = defaultdict(list)
    for _, case in run.iter_cases():
        for one in case.mistakes:
            cases[one].append(case.id)
    return tuple(
        f"{one.location.file}:{one.location.line}: {_describe_mistake(one, format_first_few(ids, _MAX_NAMED))}"
        for one, ids in cases.items()
    )


def _describe_mistake(mistake: EvalMistake, cases: str) -> str:
    match mistake.kind:
        case MistakeKind.INVALID_PATTERN:
            return f"fix the pattern of {cases}: {mistake.message}"
        case MistakeKind.UNKNOWN_EXPECTATIONS:  # cases do not share it
            return f"{cases} is skipped, because {mistake.message}"


def explain_errors(error_kind: ErrorKind | None, cases: Iterable[CaseResult | None]) -> str:
    """Explain why these cases have no score, as a text to follow a colon."""
    causes = {None if case is None else case.error_cause for case in cases}
    if error_kind is ErrorKind.EVALUATION_ERROR and causes <= {None}:
        return _TOOL_BROKE
    words = [text for cause, text in _EXPLANATIONS_BY_CAUSE.items() if cause in causes]
    return ". Others: ".join([*words, EXPLANATIONS[error_kind]] if causes - _EXPLANATIONS_BY_CAUSE.keys() else words)


def describe_error_regressions(error_kind: ErrorKind | None, number: int) -> str:
    """Describe how many regressions have an error of this kind too, as a further sentence; empty without any."""
    if not number:
        return ""
    which = format_count(number, "of the regressions is", "of the regressions are")
    return f". In addition, {which} {_COUNT_PHRASES[error_kind][number != 1]}"


def format_error_count(error_kind: ErrorKind | None, number: int) -> str:
    """`1 agent error`, `3 cases with the agent unreachable`."""
    return format_count(number, *_COUNT_PHRASES[error_kind])


def format_error_kind(case: CaseResult, error_kind: ErrorKind | None) -> str:
    """Format the error of a case in a few words: `agent error`, `timed out`."""
    late = error_kind is ErrorKind.AGENT_ERROR and all(
        trial.timed_out for trial in case.trials if trial.error_kind is ErrorKind.AGENT_ERROR
    )
    return "timed out" if late and case.trials else ERROR_KIND_WORDS[error_kind][0] if error_kind else "error"


def summarize_errors(error_kinds: Iterable[ErrorKind | None]) -> str:
    """`2 agent errors`; for several kinds `4 cases without a score: 2 agent errors, 1 agent unreachable, …`."""
    kinds = tuple(error_kinds)
    if len(set(kinds)) == 1:
        return format_error_count(kinds[0], len(kinds))
    counts = format_error_kind_counts(kinds)
    return f"{format_error_count(None, len(kinds))}{f': {counts}' if counts else ''}"
