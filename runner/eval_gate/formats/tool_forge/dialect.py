"""The tool-forge dialect: golden, labeled, regression and rubric cases.

tool-forge writes JSON. YAML is read too, unless it can be a file of AgentV cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import PurePath, PurePosixPath
from typing import Final, Literal

from eval_gate.errors import find_nearest, format_suggestion
from eval_gate.formats.base import Broken, Dialect, EvalSource, Mine, Positions, ReadOptions, Recognition
from eval_gate.formats.document_reader import DocumentReader, Findings, find_skip_reason
from eval_gate.formats.documents import JSON, YAML
from eval_gate.formats.tool_forge import lint
from eval_gate.formats.tool_forge.case_expectation import CaseExpectation
from eval_gate.formats.tool_forge.file_model import Envelope, ToolForgeCase
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import (
    CaseTurn,
    ConversationSpec,
    EvalCase,
    EvalMistake,
    EvalSuite,
    Location,
    SuiteMetadata,
    Tier,
    WorkspaceHook,
    WorkspaceHooks,
)
from eval_gate.model.conversation import Message
from eval_gate.struct import replace
from eval_gate.text.digest import DIGEST_DIGITS, dump_sorted_json, fingerprint_json
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.untrusted.excerpt import format_keys

_AGENTV_FIELDS: Final = frozenset({"criteria", "outcome", "assertions", "assert", "expected_output", "turns"})
"""Fields that AgentV's cases have with `input`: a list of such cases may be a file of AgentV."""
_TURN_KEYS: Final = frozenset({"message", "expect"})
"""Keys of a turn, which are `input` and `assertions` in AgentV."""
_CASE_KEYS: Final = frozenset(
    {"id", "input", "inputs", "turns", "user", "expect", "expected", "rubric", "message", "metadata"}
)
"""Keys of suites and cases, and usual misspellings."""
_SOURCES: Final = frozenset({"turns", "user"})
"""Keys with the messages of a conversation."""
_CASE_LEVELS: Final = 3
"""Levels of a document that are searched for cases: it, its members, and their members."""
_TIER_PREFIXES = {"gs-": Tier.GOLDEN, "ls-": Tier.LABELED, "rg-": Tier.REGRESSION}


def is_tool_forge_suite(document: JsonValue) -> bool:
    """Return whether the document looks like a tool-forge suite.

    It is a list of cases, or an object with such a list `cases`. At least one case has `expect` or `rubric`, has a
    conversation as this format writes it, or has `input` without a field of AgentV's cases such as `assertions`. An
    empty list counts if it is bare or the object has `metadata`.
    """
    cases = document.get("cases") if isinstance(document, dict) else document
    if not isinstance(cases, list):
        return False
    if not cases:
        return isinstance(document, list) or (isinstance(document, dict) and "metadata" in document)
    return any(isinstance(case, dict) and _is_case(case) for case in cases)


def _is_case(case: Mapping[str, JsonValue]) -> bool:
    if "expect" in case or "rubric" in case:
        return True
    if has_conversation(case):
        return "prompt" not in case  # Agent Evals, which refuses turns by name
    return "input" in case and _AGENTV_FIELDS.isdisjoint(case)


def has_conversation(case: Mapping[str, JsonValue]) -> bool:
    """Whether a case has turns, or a simulated user, with the keys that only this format gives them."""
    user = case.get("user")
    return (isinstance(user, dict) and "goal" in user) or any(
        not _TURN_KEYS.isdisjoint(turn) for turn in _iter_turns(case)
    )


def _iter_turns(case: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    turns = case.get("turns")
    if isinstance(turns, list):
        yield from (turn for turn in turns if isinstance(turn, dict))


def recognize_document(document: JsonValue, *, is_named: bool) -> Recognition:
    """Recognize a document of tool-forge; it is broken if its cases are not a list `cases`.

    A tier in the name says that a file holds evals, unless nothing in it has a key of a case: snapshots of other tests
    are called so too.
    """
    cases = document.get("cases") if isinstance(document, dict) else document
    if is_tool_forge_suite(document) or (is_named and isinstance(cases, list) and any(map(_has_source, cases))):
        return Mine(is_certain=any(map(_is_certain_case, _iter_mappings(document))))
    if any(map(_is_certain_case, _iter_mappings(document))) or (is_named and not _is_snapshot(document)):
        return Broken(_explain_unknown_shape(document))
    return None


def _has_source(case: JsonValue) -> bool:
    return isinstance(case, dict) and not _SOURCES.isdisjoint(case)


def has_tier_in_name(file: PurePath) -> bool:
    """Whether a file's name has a tier, such as `weather.golden.json`."""
    return _find_tier_in_name(file) is not None


def _find_tier_in_name(file: PurePath) -> Tier | None:
    suffix = PurePath(file.stem).suffix.removeprefix(".").lower()
    return next((tier for tier in Tier if tier.value == suffix), None)


def _iter_mappings(document: JsonValue) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the document, its members and their members, as far as they are mappings."""
    level = [document]
    for _ in range(_CASE_LEVELS):
        yield from (one for one in level if isinstance(one, dict))
        level = [
            member
            for one in level
            for member in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]


def _is_certain_case(value: Mapping[str, JsonValue]) -> bool:
    if "expect" in value or "rubric" in value:
        return "input" in value or has_conversation(value)
    return any(turn.keys() >= _TURN_KEYS for turn in _iter_turns(value))


def _is_snapshot(document: JsonValue) -> bool:
    """Whether a document has keys or texts, and none of a case."""
    keys = {key.lower() for one in _iter_mappings(document) for key in one}
    near = isinstance(document, dict) and any(find_nearest(key, ["cases"]) for key in document)
    return bool(document) and not near and keys.isdisjoint(_CASE_KEYS)


def _explain_unknown_shape(document: JsonValue) -> str:
    """Explain why a document that is meant as a suite is not one."""
    cases = document.get("cases") if isinstance(document, dict) else document
    if isinstance(cases, list):
        first = next((one for one in cases if isinstance(one, dict)), {})
        keys = f"; the first one has {format_keys(first)}" if first else ""
        return f"its cases need `input`, `turns` or `user`, and `expect` or `rubric`{keys}"
    if not isinstance(document, dict):
        return f"expected a list of cases, got {describe_value(document)}"
    if "cases" in document:
        return f"`cases` must be a list, got {describe_value(cases)}"
    return f"it has no list `cases`{format_suggestion('cases', document)}"


def build_json_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of an eval file: the envelope, or a bare list of cases."""
    schema: dict[str, JsonValue] = Envelope.model_json_schema()
    definitions = schema.pop("$defs")
    return {
        "title": "tool-forge eval file",
        "anyOf": [schema, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ToolForgeCase"}}],
        "$defs": definitions,
    }


def load_suite(document: JsonValue, positions: Positions, source: EvalSource, reading: ReadOptions) -> EvalSuite:
    """Load the suite from this document. Raises EvalFileError with all problems of the file at once."""
    bare = isinstance(document, list)
    reader = DocumentReader(source.file, positions, bare=bare)
    envelope = reader.validate_document(
        Envelope, {"metadata": None, "cases": document} if bare else document, convert_path=_strip_union_steps
    )
    ids = [case.id for case in envelope.cases]
    reader.check_duplicate_ids(ids)
    tier = _find_tier(envelope, reader, source.file)
    raw_cases = document if isinstance(document, list) else document["cases"] if isinstance(document, dict) else []
    assert isinstance(raw_cases, list)
    reader.check_passes(envelope, (), envelope)
    warned = Findings()
    expected = _collect_expectations(envelope.cases, raw_cases)
    for index, (case, one) in enumerate(zip(envelope.cases, expected, strict=True)):
        reader.check_passes(case, ("cases", index), envelope)
        lint.lint_case(case, ("cases", index), tier or Tier.GOLDEN, warned, is_unchecked=one.checks_nothing)
    lint.lint_keys(envelope, warned)
    warnings = reader.collect_warnings(warned, ids, strict=reading.strict)
    if tier is None:
        warnings.insert(0, "neither metadata, file name nor ids name a tier: golden is assumed")
    folder = str(source.path.absolute().parent)
    suite_hooks = WorkspaceHooks(**_read_hooks(envelope, "all", folder))
    return EvalSuite(
        file=source.file,
        format="tool-forge",
        tool_name=_get_tool_name(envelope, source.file, reading.tool_names),
        tier=tier or Tier.GOLDEN,
        metadata=_build_metadata(envelope),
        file_hash=source.file_hash,
        cases=tuple(
            _build_case(
                case.inherit_trials(envelope),
                one,
                replace(suite_hooks, **_read_hooks(case, "each", folder)),
                Location(file=source.file, line=reader.find_line(("cases", index))),
                reader.build_warnings(warned, index),
                reader.build_mistakes(warned, index),
            )
            for index, (case, one) in enumerate(zip(envelope.cases, expected, strict=True))
        ),
        warnings=tuple(warnings),
    )


def _find_tier(envelope: Envelope, reader: DocumentReader, file: str) -> Tier | None:
    """Find the tier in metadata, else in the file's name, else in the ids; an unknown one is a problem."""
    name = envelope.metadata.tier if envelope.metadata else None
    tiers = {tier.value: tier for tier in Tier}
    if name is not None:
        if name not in tiers:
            message = f'"{name[:60]}" is not a tier{format_suggestion(name, tiers)}; known: {", ".join(tiers)}'
            reader.problems.append(reader.build_problem(message, ("metadata", "tier")))
        return tiers.get(name)
    if tier := _find_tier_in_name(PurePosixPath(file)):
        return tier
    return next((tier for prefix, tier in _TIER_PREFIXES.items() if envelope.cases[0].id.startswith(prefix)), None)


def _strip_union_steps(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Remove the names that pydantic gives to members of unions and to keys."""
    return tuple(
        step for step in loc if isinstance(step, int) or not step.startswith(("list[", "dict[", "[key]", "function-"))
    )


def _get_tool_name(envelope: Envelope, file: str, tool_names: Collection[str]) -> str:
    if envelope.metadata and envelope.metadata.tool_name:
        return envelope.metadata.tool_name
    stem = PurePosixPath(file).stem
    tool = PurePosixPath(stem).stem if has_tier_in_name(PurePosixPath(file)) else stem
    underscored = tool.replace("-", "_")
    return underscored if underscored in tool_names else tool


def _build_metadata(envelope: Envelope) -> SuiteMetadata | None:
    meta = envelope.metadata
    if meta is None:
        return None
    return SuiteMetadata(
        tool_version=meta.tool_version, description_hash=meta.description_hash, registry_size=meta.registry_size
    )


def _collect_expectations(cases: Iterable[ToolForgeCase], raw_cases: Iterable[JsonValue]) -> list[CaseExpectation]:
    """Collect the expectation of each case, with one object for all cases that expect the same."""
    by_text: dict[str, CaseExpectation] = {}
    expectations: list[CaseExpectation] = []
    for case, raw in zip(cases, raw_cases, strict=True):
        assert isinstance(raw, dict)
        text = dump_sorted_json({key: raw[key] for key in _EXPECTATION_KEYS if key in raw})
        expected = by_text.get(text)
        if expected is None:
            expected = CaseExpectation.from_case(case)
            if not case.rubric:  # which has the question in it
                by_text[text] = expected
        expectations.append(expected)
    return expectations


def _build_case(
    case: ToolForgeCase,
    expected: CaseExpectation,
    hooks: WorkspaceHooks,
    location: Location,
    warnings: tuple[str, ...],
    mistakes: tuple[EvalMistake, ...],
) -> EvalCase:
    max_turns = case.max_turns or 5
    conversation = _build_conversation(case, expected)
    user = conversation.user if conversation is not None else None
    prompt: JsonValue = (
        as_fields(user) if user is not None else case.input.message if case.input is not None else [*case.messages]
    )
    question = dump_sorted_json([prompt, case.stubs, max_turns, *([case.on_turn_failure] if case.turns else ())])
    return EvalCase(  # validated already, and large in a hostile file
        id=case.id,
        suite=location.file,
        description=case.description,
        messages=(Message(role="user", content=case.input.message),) if case.input is not None else (),
        conversation=conversation,
        evaluators=expected.evaluators,
        difficulty=case.difficulty,
        tags=tuple(case.tags or ()),
        draft=case.draft,
        stubs=case.stubs,
        agent_hooks=hooks,
        max_turns=max_turns,
        skip_reason=find_skip_reason(mistakes),
        location=location,
        mistakes=mistakes,
        fingerprint=fingerprint_json(f"[{question},{expected.canonical_json}]"),
        prompt_fingerprint=fingerprint_json(question)[:DIGEST_DIGITS],
        expectation_fingerprint=fingerprint_json(expected.canonical_json)[:DIGEST_DIGITS],
        warnings=warnings,
        trials=case.trials,
        passes=case.passes,
    )


def _read_hooks(
    part: Envelope | ToolForgeCase, scope: Literal["all", "each"], folder: str
) -> dict[str, tuple[WorkspaceHook, ...]]:
    """Read the hooks before and after a suite, or each execution of a case, each with its place in the file."""
    built_hooks, whose = {}, " of the suite" if scope == "all" else ""
    for key, hooks in (("before", part.hooks_before), ("after", part.hooks_after)):
        by_place = {f"[{at}]": one for at, one in enumerate(hooks)} if isinstance(hooks, list) else {"": hooks}
        places = ((f"`{key}{place}`{whose}", one) for place, one in by_place.items() if one)
        built_hooks[f"{key}_{scope}"] = tuple(one.build(folder, place) for place, one in places)
    return built_hooks


def _build_conversation(case: ToolForgeCase, expected: CaseExpectation) -> ConversationSpec | None:
    if case.input is not None:
        return None
    return ConversationSpec(
        turns=tuple(
            CaseTurn(message=turn.message, evaluators=evaluators)
            for turn, evaluators in zip(case.turns or (), expected.turns, strict=True)
        ),
        user=case.user.to_simulated_user() if case.user is not None else None,
        stop_score=None if case.on_turn_failure == "continue" else 1.0,
        all_evaluators=(*chain.from_iterable(expected.turns), *expected.evaluators),
    )


_EXPECTATION_KEYS: Final = ("expect", "rubric", "referenceData", "turns", "user")
DIALECT: Final = Dialect(JSON | YAML, recognize_document, load_suite, build_json_schema, has_tier_in_name)
