"""Rows of tools that have a score for each scorer: what the scores decide, and names of cases that have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
    classify_error_kind,
    parse_number,
    require_name,
    shorten_name,
    to_text,
)
from eval_gate.external_results.statuses import StatusTable
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.text.digest import compute_fingerprint


def build_score(table: StatusTable, name: str, value: JsonValue, reason: str | None = None) -> RowScore:
    """Build the score of a value: a number needs a rule, and what is none means what the table says."""
    if (number := parse_number(value)) is not None:
        return RowScore(name[:200], number, None, reason)
    score = RowScore(name[:200], float(value) if isinstance(value, bool) else None, None, reason)
    return table.apply_verdict(score, value)


def let_verdicts_decide(scores: Sequence[RowScore]) -> tuple[RowScore, ...]:
    """Where a scorer has a verdict, those that have a number alone decide nothing unless a rule says so."""
    if all(one.passed is None for one in scores):
        return tuple(scores)
    return tuple(one._replace(decides=one.passed is not None or one.grader_failed) for one in scores)


def end_execution(
    scores: Sequence[RowScore],
    agent_error: str | None = None,
    *,
    tools: ExecutionEnding = ExecutionEnding(None),  # noqa: B008 (a tuple, which nobody changes)
    scorer: str = "evaluator",
) -> ExecutionEnding:
    """How an execution ended: by the error of the agent, else by its scores and the tool's own ending.

    `scorer` is the tool's word for what scores.
    """
    if agent_error is not None:
        return ExecutionEnding(Status.ERROR, classify_error_kind(agent_error), agent_error)
    if tools.status is None and not any(
        one.grader_failed or one.passed is not None or one.value is not None for one in scores
    ):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, f"no {scorer} gave a score")
    failed = "; ".join(f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is False)
    return build_ending(tools._replace(error=tools.error or failed or None), [one for one in scores if one.decides])


class PromptedCase(NamedTuple):
    """A case of a tool that tells cases apart by their prompts. `wanted` is None where nothing is expected."""

    suite: str
    prompt: str
    wanted: JsonValue
    named_by: str
    """The tool's word for the prompt."""


def build_prompted_row(
    case: PromptedCase, ending: ExecutionEnding, place: RowPlace, name: JsonValue = None
) -> ResultRow:
    """Build the row of an execution, named by the prompt, and by what is expected where others have the same prompt.

    `name` is the case's own name, where the tool has one. Raises GateError if there is neither it nor a prompt.
    """
    suite, prompt, wanted, named_by = case
    named = require_name(shorten_name(prompt) if name is None else name, place, named_by)
    content = compute_fingerprint([prompt, wanted])
    return ResultRow(
        suite=suite,
        id=named,
        place=place,
        **ending._asdict(),
        prompt=prompt,
        expectation=() if wanted is None else (to_text(wanted),),
        content=content,
        digests=digest_prompt("input", prompt, wanted),
        rerun_name=prompt if name is None else None,
        longer_name=None if wanted is None else f"{named[:300]} → {shorten_name(to_text(wanted))}",
        named_by=named_by,
    )
