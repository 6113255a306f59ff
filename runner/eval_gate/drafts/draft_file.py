"""Build and check a new eval file of drafts from observations, and list behavior that these lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from eval_gate.drafts.case_writers import AGENTV, TOOL_FORGE, DraftCase, DraftFormat, build_case_id
from eval_gate.drafts.expectations import derive_expectation
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import find_refusal_problem, reads_like_refusal
from eval_gate.drafts.response_facts import Wording
from eval_gate.drafts.turn_joining import join_conversations, list_questions, list_turns
from eval_gate.drafts.update import list_failures
from eval_gate.errors import GateError, format_suggestion
from eval_gate.evaluators.base import EvaluatorError
from eval_gate.files.file_paths import format_path
from eval_gate.formats.base import EvalSource, ReadOptions
from eval_gate.formats.discovery import DIALECTS
from eval_gate.formats.documents import parse_document
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.conversation import ToolSpec
from eval_gate.model.limits import DRAFT_PROMPT
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_first_few, to_one_line
from eval_gate.text.javascript.regex import PatternMatcher, PatternWorkerError
from eval_gate.text.mask import MASK
from eval_gate.text.quoting import quote_name, quote_value
from eval_gate.text.tokens import TokenData
from eval_gate.text.untrusted.surrogates import is_well_formed

FORMATS: Final[Mapping[str, DraftFormat]] = {one.name: one for one in (TOOL_FORGE, AGENTV)}
_NO_RESPONSE: Final = "no response"
_NOT_IN_TURN: Final = "the messages before it are not those of a user and an agent in turn: use the format agentv"
_NOTHING_SHARED: Final = "its responses share no tool call, fact or field: write the case by hand"


class SkippedObservation(FrozenStruct):
    """A question without a case, and why."""

    observation: Observation
    reason: str


class DraftFile(FrozenStruct):
    """Text of a new eval file, its cases in order, and the questions without a case."""

    text: str
    cases: tuple[DraftCase, ...]
    skipped: tuple[SkippedObservation, ...]


def find_format(name: str, file: Path) -> DraftFormat:
    """Find the format of this name for a new file. Raises GateError, also for another suffix or an existing file."""
    form = FORMATS.get(name)
    if form is None:
        raise GateError(
            "unknown-value",
            f"format: {quote_value(name)} is not known{format_suggestion(name, FORMATS)}",
            f"allowed: {', '.join(FORMATS)}",
        )
    shown_as = quote_name(file.as_posix())
    if file.suffix not in form.suffixes:
        raise GateError(
            "invalid-output-path",
            f"{shown_as} does not end with {' or '.join(form.suffixes)}, as a file of the format {name} does",
            f"name a file such as evals/first{form.suffix}",
        )
    require_new_file(file)
    return form


def require_new_file(file: Path) -> None:
    """Require that there is no file of this path. Raises GateError `draft-file-exists`."""
    if file.exists() or file.is_symlink():
        raise GateError(
            "draft-file-exists",
            f"{quote_name(file.as_posix())} exists already; nothing was written",
            "name a new file: a run reads all eval files of a folder. To change cases, use --update",
        )


async def build_draft_file(
    observations: Sequence[Observation], form: DraftFormat, file: Path, root: Path, moment: datetime | None = None
) -> DraftFile:
    """Build the text of a file with one draft for each observation that allows one.

    The text is then read as by a run with `--strict`, and a case that fails with its own responses is left out.
    `moment` is when the target responded.
    """
    if not form.has_earlier_messages:
        observations = join_conversations(observations)
    cases, skipped = _derive_cases(observations, form, moment)
    if cases:
        suite = _read_text(_build_text(cases, form), form, file, root)
        failing = await _find_failing_cases(suite.cases, cases)
        skipped += [SkippedObservation(case.observation, reason) for case, reason in failing]
        broken = {case.id for case, _ in failing}
        cases = [case for case in cases if case.id not in broken]
    if not cases:
        return DraftFile("", (), tuple(skipped))
    text = _build_text(cases, form)
    _read_text(text, form, file, root)
    return DraftFile(text, tuple(cases), tuple(skipped))


def _derive_cases(
    observations: Sequence[Observation], form: DraftFormat, moment: datetime | None
) -> tuple[list[DraftCase], list[SkippedObservation]]:
    counts = Counter[str]()
    cases: list[DraftCase] = []
    skipped: list[SkippedObservation] = []
    wording = Wording.from_answers(turn.responses for one in observations for turn in list_turns(one))
    for observation in observations:
        expectations = tuple(derive_expectation(turn, moment, wording) for turn in list_turns(observation))
        if form is AGENTV:  # whose assertions see only the text
            expectations = tuple(replace(one, fields=()) for one in expectations)
        reason = _find_problem(observation, form) or _find_refusal_problem(observation)
        if reason is None and all(one.checks_nothing for one in expectations):
            reason = ". ".join((_NOTHING_SHARED, *(remark for one in expectations for remark in one.remarks)))
        if reason is None:
            case_id = build_case_id(form.id_prefix, counts, expectations, observation)
            cases.append(DraftCase(case_id, observation, expectations))
        else:
            skipped.append(SkippedObservation(observation, reason))
    return cases, skipped


def _find_problem(observation: Observation, form: DraftFormat) -> str | None:
    """Find why no case can be written for an observation; None if one can."""
    contents = (message.content for message in observation.earlier_messages)
    questions = [turn.question for turn in list_turns(observation)]
    texts = [*questions, *(one for one in contents if isinstance(one, str))]
    if not observation.responses:
        return observation.errors[0] if observation.errors else _NO_RESPONSE
    if observation.earlier_messages and not form.has_earlier_messages:
        return _NOT_IN_TURN
    if not all(question.strip() for question in questions):
        return "the question is empty"
    if any(MASK in text for text in texts):
        return "it holds a secret or personal data, which was masked"
    if not all(map(is_well_formed, texts)):
        return "it is not valid Unicode"
    if sum(map(len, texts)) > DRAFT_PROMPT:
        return f"it is longer than {DRAFT_PROMPT:,} characters"
    if form is AGENTV and any("${{" in text for text in texts):
        return "it holds ${{, which the format agentv takes for a variable"
    return None


def _find_refusal_problem(observation: Observation) -> str | None:
    """Find why no case can be written because of a refusal, for which a turn cannot have a rubric."""
    if not observation.turns:
        return find_refusal_problem(observation)
    for number, turn in enumerate(observation.turns, 1):
        if any(map(reads_like_refusal, turn.responses)):
            return f"turn {number}: it reads like a refusal: a turn has no rubric, so write the case by hand"
    return None


def _build_text(cases: Sequence[DraftCase], form: DraftFormat) -> str:
    return form.build_text([form.build_case(case) for case in cases])


def _read_text(text: str, form: DraftFormat, file: Path, root: Path) -> EvalSuite:
    """Read the text as a run with --strict reads the file. Raises GateError with every problem."""
    shown_as, data = format_path(file, root), text.encode()
    dialect = DIALECTS[form.name]
    document = parse_document(dialect.notations[file.suffix], data, file, shown_as)
    return dialect.load(
        document.value, document.positions, EvalSource(shown_as, data, file, root), ReadOptions(strict=True)
    )


async def _find_failing_cases(
    eval_cases: Sequence[EvalCase], cases: Sequence[DraftCase]
) -> list[tuple[DraftCase, str]]:
    """Find the cases that fail with their own responses, or whose prompt differs."""
    failing: list[tuple[DraftCase, str]] = []
    matcher = PatternMatcher()
    try:
        for one, case in zip(eval_cases, cases, strict=True):
            turns = list_turns(case.observation)
            if list_questions(one) != tuple(turn.question for turn in turns):
                failing.append((case, "its format would change the question, such as blanks at its end"))
                continue
            try:
                failures = await list_failures(one, [turn.responses for turn in turns], TokenData(), matcher)
            except (EvaluatorError, PatternWorkerError) as error:
                failures = [str(error)]
            if failures:
                failing.append((case, f"its own responses would not pass: {failures[0]}"))
    finally:
        await matcher.aclose()
    return failing


_MAX_LISTED: Final = 10
_MAX_NAME: Final = 60


def list_unseen(observations: Sequence[Observation], tools: Iterable[ToolSpec]) -> list[str]:
    """List in phrases what no response did: `a refusal`, `a tool error`. `tools` are those that are defined."""
    responses = [response for one in observations for turn in list_turns(one) for response in turn.responses]
    calls = [call for response in responses for call in response.tool_calls]
    called_tools = {call.name for call in calls}
    unseen = []
    if not any(any(one.refusals) or find_refusal_problem(one) for one in observations):
        unseen.append("a refusal: ask for something that the agent must not do")
    if any(response.tool_calls_known is True or response.tool_calls for response in responses):
        if not any(call.success is False for call in calls):
            unseen.append("a tool error: ask for something that a tool cannot find")
        if all(response.tool_calls for response in responses):
            unseen.append("a response without a tool: ask for something that needs none")
        uncalled_tools = [to_one_line(tool.name, _MAX_NAME) for tool in tools if tool.name not in called_tools]
        if uncalled_tools:
            names = format_first_few(uncalled_tools, _MAX_LISTED)
            unseen.append(f"a call of {names}: {'it is' if len(uncalled_tools) == 1 else 'they are'} defined")
    elif responses:
        unseen.append("a tool: the responses do not list tool calls")
    if not any(one.earlier_messages or one.turns for one in observations):
        unseen.append("a second turn of a conversation")
    return unseen
