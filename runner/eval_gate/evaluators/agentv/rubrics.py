"""A model says of every check whether the answer satisfies it (AgentV, `rubrics`).

Source: agentv behaviour 6.1. A check of which the judge says nothing is not met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext
from eval_gate.evaluators.judge.judge import ask, brief_of, judge_of, said_by
from eval_gate.evaluators.judge.prompt import MATERIAL, NONE, TEXT, Prompts, close, json_text, object_schema, section
from eval_gate.evaluators.judge.reply import MAX_ITEM, first_valid, text_of
from eval_gate.evaluators.weighing import weighted_mean
from eval_gate.evaluators.wording import cut, items, names
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Brief
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import RubricCheck, RubricJudge
from eval_gate.struct import FrozenStruct, replace

SYSTEM: Final = f"""\
You examine one answer of an AI assistant by a list of checks, strictly and only by what you are given.

{MATERIAL}

checks lists what is to be examined. Decide for every check by itself whether the answer satisfies it: satisfied is \
true only when it is satisfied completely.

Reply with a single JSON object and nothing else, in exactly this form, with one entry for every check:
{{"checks": [{{"id": <id, as in checks>, "satisfied": <true or false>, "reasoning": <one sentence>}}, …], \
"overall_reasoning": <one to three sentences>}}"""

_FINDING: Final = object_schema({"id": dict(TEXT), "satisfied": {"type": "boolean"}, "reasoning": dict(TEXT)})
SCHEMA: Final = object_schema({"checks": {"type": "array", "items": _FINDING}, "overall_reasoning": dict(TEXT)})
"""The form of the reply, for providers that hold a model to it."""

_TASK: Final = """\
Examine candidate_answer, which answers question, by every check of checks. expected_outcome says what a good answer \
achieves; where there is a reference_answer it shows one."""


class CheckFinding(FrozenStruct):
    """One check and what the judge said of it; `given` is false where it said nothing."""

    check: RubricCheck
    satisfied: bool = False
    reasoning: str | None = None
    given: bool = False

    def __str__(self) -> str:
        said = self.reasoning or (None if self.given else "the judge said nothing of it")
        line = f"{self.check.id}: {self.check.description}"
        return cut(f"{line}: {said}" if said else line, MAX_ITEM)


class _Reply(FrozenStruct):
    findings: tuple[CheckFinding, ...]
    reasoning: str | None


async def rubric_judge(spec: RubricJudge, context: EvaluationContext) -> Evaluation:
    """The satisfied share of all weights; a required check that is not satisfied fails it, whatever the share."""
    judge = judge_of(spec.name, context, spec.judge_target)
    prompts = render(spec, brief_of(context), context.response)
    said = said_by(context.response)
    asked = await ask(spec.name, judge, prompts, lambda reply: read_findings(reply, spec.checks, said), SCHEMA)
    if asked.verdict is None:
        # a check of which nothing is known is not met
        unknown = asked.unreadable(spec.name, checks_run=len(spec.checks))
        return replace(unknown, vetoed=any(check.required for check in spec.checks))
    findings = asked.verdict.findings
    unmet = [finding for finding in findings if not finding.satisfied]
    score = weighted_mean((finding.check.weight, float(finding.satisfied)) for finding in findings)
    return Evaluation(
        score=score,
        hits=items(str(finding) for finding in findings if finding.satisfied),
        misses=items(str(finding) for finding in unmet),
        error=_error(spec, unmet) if unmet or score < 1 else None,
        checks_run=len(findings),
        reasoning=asked.verdict.reasoning,
        provider_request=asked.request | {"checks": [_facts(finding) for finding in findings]},
        usage=asked.usage,
        cost_usd=asked.cost_usd,
        vetoed=any(finding.check.required for finding in unmet),
    )


def _error(spec: RubricJudge, unmet: Sequence[CheckFinding]) -> str:
    if not unmet:
        return f"{cut(spec.name)}: no check has a weight"
    required = [finding.check.id for finding in unmet if finding.check.required]
    what = f", required: {names(required)}" if required else ""
    ids = names(finding.check.id for finding in unmet)
    return f"{cut(spec.name)}: {len(unmet)} of {len(spec.checks)} checks not satisfied {ids}{what}"


def _facts(finding: CheckFinding) -> JsonValue:
    return {
        "id": finding.check.id,
        "satisfied": finding.satisfied,
        "given": finding.given,
        "weight": finding.check.weight,
        "required": finding.check.required,
        "reasoning": finding.reasoning,
    }


def render(spec: RubricJudge, brief: Brief, response: Response) -> Prompts:
    """Both prompts of this rubric for this response. The judge is not told what a check weighs."""
    checks: list[JsonValue] = [{"id": check.id, "description": check.description} for check in spec.checks]
    sections = (
        _TASK,
        section("expected_outcome", brief.expected_outcome),
        section("question", brief.question),
        section("reference_answer", brief.reference_answer or NONE),
        section("checks", json_text(checks)),
        section("candidate_answer", response.text),
    )
    return Prompts(SYSTEM, close(*sections))


def read_findings(reply: str, checks: Sequence[RubricCheck], candidate: str = "") -> _Reply | None:
    """A finding for every check, in the rubric's order; None when the reply speaks of none of them.

    Of two entries for one check the first counts.
    """

    def read(found: dict[str, JsonValue]) -> _Reply | None:
        entries = _entries(found.get("checks"))
        findings = tuple(_finding(check, entries) for check in checks)
        if not any(finding.given for finding in findings):
            return None
        return _Reply(findings, text_of(found.get("overall_reasoning")))

    return first_valid(reply, candidate, read)


def _entries(value: JsonValue) -> dict[str, Mapping[str, JsonValue]]:
    """Entries by id: only those that say yes or no. A judge may write the id `1` as a number."""
    entries: dict[str, Mapping[str, JsonValue]] = {}
    for entry in value if isinstance(value, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("satisfied"), bool):
            continue
        name = entry.get("id")
        if isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool)):
            entries.setdefault(_key(name), entry)
    return entries


def _key(name: str | int) -> str:
    return str(name).strip()


def _finding(check: RubricCheck, entries: Mapping[str, Mapping[str, JsonValue]]) -> CheckFinding:
    entry = entries.get(_key(check.id))
    if entry is None:
        return CheckFinding(check)
    return CheckFinding(check, entry.get("satisfied") is True, text_of(entry.get("reasoning"), MAX_ITEM), given=True)
