"""Update the expectations of existing cases to what their target does now.

Only failing expectations are replaced. What responses do not show, such as a rubric, stays and is named. A description
that `draft` wrote is renewed; one that a person wrote stays and is named. No eval file names the author: `draft` wrote
a description if it only repeats, in the words of `DraftExpectation.description`, what its case expects.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from eval_gate.drafts.case_edit import ANY_TARGET, CaseFile, RawCase
from eval_gate.drafts.case_writers import describe_draft
from eval_gate.drafts.expectation_merge import ExpectationMerger, Part
from eval_gate.drafts.expectations import derive_expectation
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.turn_joining import list_turns, split_turns
from eval_gate.errors import GateError
from eval_gate.evaluators.aggregation import score_case
from eval_gate.evaluators.base import EvaluationContext, EvaluatorError
from eval_gate.evaluators.dispatch import run_evaluator
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.v4.file_model import ASSERTIONS
from eval_gate.formats.base import EvalSource, ReadOptions
from eval_gate.formats.discovery import DIALECTS
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Response
from eval_gate.model.specs import evaluator as specs
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.json_values import iter_texts
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.value_edit import is_same_value
from eval_gate.text.tokens import TokenData

_NOT_QUOTED: Final = re.compile(r"^one of | and \d+ more$|…$")
"""Words of a list that are no part of its members, and the end of a shortened member."""
_REMARK: Final = (
    r"(?:(?:A call failed|Left out, because it differed between \d+ executions|Left out as values of this moment|"
    r"Only sent, because the value looks like one of this moment|"
    r"The question depends on the day, so these may differ later): (?:[^.]|\.(?! ))*|"
    r"\d+ more numbers and names of the response are not expected|\d+ of \d+ executions had no response)"
)
_DESCRIPTION: Final = re.compile(
    r"(?:calls (?P<tools>.+?))??(?:, )?(?:answers with (?P<facts>.+?)|answers in words|refuses)?"
    rf"(?:\. {_REMARK})*"
)
"""A summary, and remarks about what was left out; no sentence of a person matches."""
_TURN_LABEL: Final = re.compile(r"(?:^|; )turn (\d{1,3}): ")
"""What stands before the description of a turn in that of a conversation."""
_EITHER_CASE: Final = re.compile(r"\[(\w)\w\]")
"""`[Oo]` of a pattern that finds a word in either case."""
_NO_TOOL: Final = "no tool"
_MAX_LENGTH: Final = 3_000
"""Characters of the longest description that is searched."""


def is_drafted_description(description: str, expectation: JsonValue) -> bool:
    """Whether a description only repeats this expectation of the file."""
    match = _DESCRIPTION.fullmatch(description) if 0 < len(description) <= _MAX_LENGTH else None
    if match is None:
        return False
    strings = [*iter_texts(expectation)]
    texts = [*strings, *(_EITHER_CASE.sub(r"\1", text.replace("\\", "")) for text in strings)]  # what patterns find
    tools = [name for name in _split(match["tools"], r", | or ") if name != _NO_TOOL]
    has_tools = all(name in texts for name in tools)
    facts = [fact.casefold() for fact in _split(match["facts"], ", ")]
    return has_tools and all(any(fact in text.casefold() for text in texts) for fact in facts)


def _split(listed: str | None, between: str) -> list[str]:
    """Split a list of names or facts, each without the words around it."""
    return [_NOT_QUOTED.sub("", one) for one in re.split(between, _NOT_QUOTED.sub("", listed))] if listed else []


_PROBE: Final = Path("probe.json")
UNSCORED: Final = (specs.Rubric, specs.RubricJudge, specs.LlmJudge, specs.CodeJudge, specs.CodeGrader, specs.Composite)
"""Evaluators that may call a model or start a program: an update does not change them."""


class CaseUpdate(FrozenStruct):
    """The new text of a file after an update of one case, and remarks on what still fails."""

    file: CaseFile
    remarks: tuple[str, ...] = ()


class ObservedCase(FrozenStruct):
    """What the target did for a case: unmasked to score it, and with secrets masked to write it."""

    scored: Observation
    masked: Observation | None
    """None if it could not be masked: nothing of it may be written."""


async def update_case(
    file: CaseFile, case: EvalCase, observed: ObservedCase, tokens: TokenData, moment: datetime | None = None
) -> CaseUpdate:
    """Update the failing expectations of a case, unwritten. Raises GateError if it cannot be edited."""
    responses = observed.scored.responses
    if observed.scored.errors or not responses:
        count = len(observed.scored.errors) + len(responses)
        why = observed.scored.errors[0] if observed.scored.errors else "it was not asked"
        return CaseUpdate(file, remarks=(f"{len(responses)} of {count} executions have a response: {why}",))
    if observed.masked is None:
        return CaseUpdate(file, remarks=("its responses could not be searched for the `redact` patterns",))
    raw = file.find_raw_case(case)
    matcher = PatternMatcher()
    try:
        updater = _CaseUpdater(file.suite.format, tokens, matcher, moment)
        new = await updater.merge_case(raw, case, observed.scored, observed.masked)
        remarks: list[str] = []
        if not is_same_value(raw, new):
            derived = [derive_expectation(one, moment) for one in list_turns(observed.masked)]
            new, remarks = _renew_description(raw, new, describe_draft(observed.masked, derived))
            file = file.replace_cases({case.id: new})
            case = next(one for one in file.suite.cases if one.id == case.id)
        remarks += [one async for one in updater.iter_failures(case, observed.scored)]
        return CaseUpdate(file, tuple(remarks))
    finally:
        await matcher.aclose()


def _scores_transcript(case: EvalCase) -> bool:
    return case.conversation is not None and case.conversation.scores_transcript


def _get_turns(raw: RawCase) -> list[RawCase]:
    turns = raw.get("turns")
    return [one for one in turns if isinstance(one, dict)] if isinstance(turns, list) else []


def _renew_description(raw: RawCase, new: RawCase, description: str) -> tuple[RawCase, list[str]]:
    """Renew the description of a case whose expectations changed, or say that it stays because a person wrote it."""
    old = raw.get("description")
    if not isinstance(old, str) or not old.strip():
        return new, []
    parts: list[tuple[str, JsonValue]] = [(old, raw)]
    if turns := {str(number): turn for number, turn in enumerate(_get_turns(raw), 1)}:
        begin, *labelled = _TURN_LABEL.split(old)
        numbered = zip(labelled[::2], labelled[1::2], strict=True)
        parts = [(begin, None)] if begin else [(text, turns.get(number)) for number, text in numbered]
    if all(is_drafted_description(text, _get_expectation(part)) for text, part in parts):
        return {**new, "description": description}, []
    return new, ["its description stays, because a person wrote or changed it: check that it still holds"]


def _get_expectation(part: JsonValue) -> JsonValue:
    """Return what a case, or a turn, expects, as it is written."""
    if not isinstance(part, dict):
        return None
    return part["expect"] if "expect" in part else part.get(find_used_name(part, ASSERTIONS) or "")


async def list_failures(
    case: EvalCase, responses: Sequence[Sequence[Response]], tokens: TokenData, matcher: PatternMatcher
) -> list[str]:
    """List why responses to its turns fail a case without its judges and programs.

    A case with one message is one turn. Raises EvaluatorError, PatternWorkerError.
    """
    failures: list[str] = []
    for number, (turn, answers) in enumerate(zip(split_turns(case), responses, strict=False), 1):
        scored = replace(turn, evaluators=tuple(spec for spec in turn.evaluators if not isinstance(spec, UNSCORED)))
        scores = [
            await score_case(EvaluationContext(scored, one, tokens, matcher)) for one in answers if scored.evaluators
        ]
        label = f"turn {number}: " if case.conversation is not None else ""
        failures += [f"{label}{score.error or 'the score is too low'}" for score in scores if not score.passed]
    return failures


class _CaseUpdater:
    def __init__(self, file_format: str, tokens: TokenData, matcher: PatternMatcher, moment: datetime | None) -> None:
        self._format = file_format
        self._tokens = tokens
        self._matcher = matcher
        self._moment = moment

    async def merge_case(self, raw: RawCase, case: EvalCase, scored: Observation, masked: Observation) -> RawCase:
        """Return the case with its merged expectations; what it expects of a transcript stays."""
        if turns := _get_turns(raw):
            parts = zip(turns, scored.turns, masked.turns, strict=True)
            raw = {**raw, "turns": [await self._merge_part(*part) for part in parts]}
        return raw if _scores_transcript(case) else await self._merge_part(raw, scored, masked)

    async def _merge_part(self, raw: RawCase, scored: Observation, masked: Observation) -> RawCase:
        """Return a case or turn with its merged expectations, as far as responses show them."""
        called_tools = {call.name for response in scored.responses for call in response.tool_calls}
        fails = partial(self._fails, scored.responses)
        merger = ExpectationMerger(derive_expectation(masked, self._moment), called_tools, fails)
        if self._format == "tool-forge":
            expect = raw.get("expect")
            return {**raw, "expect": await merger.merge_expect(expect)} if isinstance(expect, dict) else raw
        name = find_used_name(raw, ASSERTIONS)
        listed = raw.get(name) if name else None
        if name is None or not isinstance(listed, list):
            return raw
        return {**raw, name: await merger.merge_assertions(listed)}

    async def _fails(self, responses: Sequence[Response], part: Part) -> bool:
        """Whether a part of the expectation fails for a response. What cannot be scored does not."""
        try:
            case = _read_probe(self._format, part)
        except GateError:
            return False
        for spec in case.evaluators:
            if await self._find_error(case, spec, responses) is not None:
                return True
        return False

    async def iter_failures(self, case: EvalCase, scored: Observation) -> AsyncIterator[str]:
        """Yield a sentence for each evaluator of a case that fails, and for those that are not scored here."""
        if case.conversation is not None:
            for number, (turn, observation) in enumerate(zip(split_turns(case), scored.turns, strict=True), 1):
                async for failure in self._iter_part_failures(turn, observation):
                    yield f"turn {number}: {failure}"
        if not _scores_transcript(case):
            async for failure in self._iter_part_failures(case, scored):
                yield failure
        elif case.evaluators:
            yield "its assertions about the whole conversation: left as they are"

    async def _iter_part_failures(self, case: EvalCase, scored: Observation) -> AsyncIterator[str]:
        for spec in case.evaluators:
            if isinstance(spec, UNSCORED):
                yield f"{spec.name}: left as it is, because responses do not show it"
            elif (error := await self._find_error(case, spec, scored.responses)) is not None:
                yield f"still fails: {error}"

    async def _find_error(self, case: EvalCase, spec: specs.EvaluatorSpec, responses: Sequence[Response]) -> str | None:
        for response in responses:
            try:
                score = await run_evaluator(spec, EvaluationContext(case, response, self._tokens, self._matcher))
            except EvaluatorError:
                return None
            if not score.passed:
                return score.error or spec.name
        return None


def _read_probe(file_format: str, part: Part) -> EvalCase:
    """Read a case that expects this part alone. Raises GateError."""
    document: JsonValue
    if file_format == "tool-forge":
        document = [{"id": "probe", "input": {"message": "probe"}, "expect": dict(part)}]
    else:
        document = {"tests": [{"id": "probe", "input": "probe", "assertions": [dict(part)]}]}
    data = json.dumps(document).encode()
    value, positions = parse_json(data, _PROBE.name)
    source = EvalSource(_PROBE.name, data, _PROBE, Path())
    return DIALECTS[file_format].load(value, positions, source, ReadOptions(target_override=ANY_TARGET)).cases[0]


def render_diff(old: CaseFile, new: CaseFile) -> Iterator[str]:
    """Render the changes of a file as lines of a unified diff, as they are in the file."""
    old_lines, new_lines = ([line.rstrip("\r") for line in one.data.decode().split("\n")] for one in (old, new))
    yield from difflib.unified_diff(old_lines, new_lines, old.shown_as, new.shown_as, lineterm="")
