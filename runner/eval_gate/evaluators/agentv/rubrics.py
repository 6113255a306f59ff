"""Evaluator that asks an LLM judge about every check of a rubric (AgentV, `rubrics`).

Source: agentv behaviour 6.1. A check that the judge does not mention is not met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore
from eval_gate.evaluators.judge.llm_judge import ask_judge, collect_target_text, get_brief, get_judge
from eval_gate.evaluators.judge.prompt import (
    MATERIAL_NOTICE,
    NO_VALUE,
    TEXT_SCHEMA,
    Prompts,
    build_object_schema,
    format_json,
    format_section,
    join_sections,
)
from eval_gate.evaluators.judge.reply import MAX_ITEM, find_first_valid, parse_text
from eval_gate.evaluators.weighted_mean import compute_weighted_mean
from eval_gate.evaluators.wording import format_names, limit_items, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import RubricCheck, RubricJudge
from eval_gate.struct import FrozenStruct, replace

SYSTEM: Final = f"""\
You examine one answer of an AI assistant by a list of checks, strictly and only by what you are given.

{MATERIAL_NOTICE}

checks lists what is to be examined. Decide for every check by itself whether the answer satisfies it: satisfied is \
true only when it is satisfied completely.

Reply with a single JSON object and nothing else, in exactly this form, with one entry for every check:
{{"checks": [{{"id": <id, as in checks>, "satisfied": <true or false>, "reasoning": <one sentence>}}, …], \
"overall_reasoning": <one to three sentences>}}"""

_FINDING_SCHEMA: Final = build_object_schema(
    {"id": dict(TEXT_SCHEMA), "satisfied": {"type": "boolean"}, "reasoning": dict(TEXT_SCHEMA)}
)
SCHEMA: Final = build_object_schema(
    {"checks": {"type": "array", "items": _FINDING_SCHEMA}, "overall_reasoning": dict(TEXT_SCHEMA)}
)

_TASK: Final = """\
Examine candidate_answer, which answers question, by every check of checks. expected_outcome says what a good answer \
achieves; where there is a reference_answer it shows one."""


class CheckFinding(FrozenStruct):
    """The judge's verdict on one check; `has_verdict` is false where the reply does not mention it."""

    check: RubricCheck
    satisfied: bool = False
    reasoning: str | None = None
    has_verdict: bool = False

    def __str__(self) -> str:
        explanation = self.reasoning or (None if self.has_verdict else "the judge did not grade it")
        line = f"{self.check.id}: {self.check.description}"
        return truncate(f"{line}: {explanation}" if explanation else line, MAX_ITEM)


class _RubricReply(FrozenStruct):
    findings: tuple[CheckFinding, ...]
    reasoning: str | None


async def evaluate_rubric_judge(spec: RubricJudge, context: EvaluationContext) -> EvaluatorScore:
    """Score the weighted share of satisfied checks; a required one that is not satisfied fails whatever the share."""
    judge = get_judge(spec.name, context, spec.judge_target)
    prompts = render_prompts(spec, get_brief(context), context.judged_response, context.get_changes(spec.name))
    text = collect_target_text(context)
    outcome = await ask_judge(spec.name, judge, prompts, lambda reply: read_findings(reply, spec.checks, text), SCHEMA)
    if outcome.verdict is None:
        # a check without a grade is not met
        unknown = outcome.to_zero_score(spec.name, checks_run=len(spec.checks))
        return replace(unknown, vetoed=any(check.required for check in spec.checks))
    findings = outcome.verdict.findings
    unmet = [finding for finding in findings if not finding.satisfied]
    score = compute_weighted_mean((finding.check.weight, float(finding.satisfied)) for finding in findings)
    return EvaluatorScore(
        score=score,
        hits=limit_items(str(finding) for finding in findings if finding.satisfied),
        misses=limit_items(str(finding) for finding in unmet),
        error=_describe_unmet(spec, unmet) if unmet or score < 1 else None,
        checks_run=len(findings),
        reasoning=outcome.verdict.reasoning,
        provider_request=outcome.request | {"checks": [_finding_to_json(finding) for finding in findings]},
        usage=outcome.usage,
        cost_usd=outcome.cost_usd,
        vetoed=any(finding.check.required for finding in unmet),
    )


def _describe_unmet(spec: RubricJudge, unmet: Sequence[CheckFinding]) -> str:
    if not unmet:
        return f"{truncate(spec.name)}: no check has a weight"
    required = [finding.check.id for finding in unmet if finding.check.required]
    what = f", required: {format_names(required)}" if required else ""
    ids = format_names(finding.check.id for finding in unmet)
    return f"{truncate(spec.name)}: {len(unmet)} of {len(spec.checks)} checks not satisfied {ids}{what}"


def _finding_to_json(finding: CheckFinding) -> JsonValue:
    return {
        "id": finding.check.id,
        "satisfied": finding.satisfied,
        "given": finding.has_verdict,
        "weight": finding.check.weight,
        "required": finding.check.required,
        "reasoning": finding.reasoning,
    }


def render_prompts(spec: RubricJudge, brief: CaseBrief, response: Response, changes: str | None = None) -> Prompts:
    """Build the prompts; `changes` are those in the workspace. The judge does not see the weights of the checks."""
    checks: list[JsonValue] = [{"id": check.id, "description": check.description} for check in spec.checks]
    sections = (
        _TASK,
        format_section("expected_outcome", brief.expected_outcome),
        format_section("question", brief.question),
        format_section("reference_answer", brief.reference_answer or NO_VALUE),
        format_section("checks", format_json(checks)),
        format_section("candidate_answer", response.text),
        *(() if changes is None else (format_section("file_changes", changes),)),
    )
    return Prompts(SYSTEM, join_sections(*sections))


def read_findings(reply: str, checks: Sequence[RubricCheck], candidate: str = "") -> _RubricReply | None:
    """Parse a finding for every check, in their order; the first of two counts. None without any verdict."""

    def read(document: dict[str, JsonValue]) -> _RubricReply | None:
        entries = _index_entries(document.get("checks"))
        findings = tuple(_build_finding(check, entries) for check in checks)
        if not any(finding.has_verdict for finding in findings):
            return None
        return _RubricReply(findings, parse_text(document.get("overall_reasoning")))

    return find_first_valid(reply, candidate, read)


def _index_entries(value: JsonValue) -> dict[str, Mapping[str, JsonValue]]:
    """Index the entries with a yes or no by id. A judge may write the id `1` as a number."""
    entries: dict[str, Mapping[str, JsonValue]] = {}
    for entry in value if isinstance(value, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("satisfied"), bool):
            continue
        name = entry.get("id")
        if isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool)):
            entries.setdefault(_normalize_id(name), entry)
    return entries


def _normalize_id(name: str | int) -> str:
    return str(name).strip()


def _build_finding(check: RubricCheck, entries: Mapping[str, Mapping[str, JsonValue]]) -> CheckFinding:
    entry = entries.get(_normalize_id(check.id))
    if entry is None:
        return CheckFinding(check)
    return CheckFinding(
        check, entry.get("satisfied") is True, parse_text(entry.get("reasoning"), MAX_ITEM), has_verdict=True
    )
