"""Conversion of a promptfoo configuration to eval files and a list of targets."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.importers.import_result import ImportResult, NotImportableError, SkippedItem, SourcePlace
from eval_gate.importers.promptfoo.assertions import CaseChecks, convert_assertions
from eval_gate.importers.promptfoo.config_files import PromptfooFile, PromptfooFolder, read_document
from eval_gate.importers.promptfoo.prompts import PromptfooPrompt, RenderedPrompt, iter_prompts, render_prompt
from eval_gate.importers.promptfoo.providers import PromptfooProvider, convert_providers
from eval_gate.importers.promptfoo.templates import find_only_variable, is_template
from eval_gate.importers.promptfoo.tests import PromptfooTest, format_variables, iter_tests
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CASES, EVAL_FILE_BYTES
from eval_gate.struct import Struct, field
from eval_gate.text.digest import compute_digest
from eval_gate.text.javascript.regex import find_pattern_problem

TARGETS_FILE: Final = "targets.yaml"
_DEFAULT_STEM: Final = "promptfooconfig"
_MAX_ID: Final = 200
_MAX_PROVIDERS: Final = 1_000
_MAX_SHOWN_VARIABLES: Final = 150
_CONFIG_KEYS: Final = ("prompts", "tests", "scenarios", "defaultTest")
_IGNORED_KEYS: Final = frozenset(
    {
        *("description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "$schema", "tags"),
        *("outputPath", "sharing", "writeLatestResults", "metadata", "assertionTemplates", "commandLineOptions"),
        *("evaluateOptions", "nunjucksFilters"),
    }
)
_SKIP_REASONS: Final = {
    "env": "variables are not imported: set them where the gate runs",
    "derivedMetrics": "metrics derived from scores are not imported",
    "redteam": "red-team plugins generate new tests for every run, so they have no eval files",
    "tracing": "traces are not read",
}


_SPLIT_HINT: Final = "import its tests in parts"
_MESSAGE_LIST_REASON: Final = "it gets the messages of the prompt as one text, but a model gets them as messages"


class _ImportedSuite(Struct):
    """The cases of one prompt. All of them share its system message, if it has one."""

    number: int
    cases: list[dict[str, JsonValue]] = field(default_factory=list)
    places: list[tuple[SourcePlace, str]] = field(default_factory=list)
    untrusted_patterns: list[list[str]] = field(default_factory=list)
    system: str | None = None
    chat: bool = False
    """Whether its questions are taken out of a list of messages."""


def import_promptfoo(config: Path, shown: str, into: str) -> ImportResult:
    """Convert a promptfoo configuration to suites and targets, without writing or running anything.

    No target is called either. `shown` is the path to display, and `into` is the folder for the result, relative to
    the working directory. Raises GateError for a file that cannot be read or is not a promptfoo configuration.
    """
    if config.suffix not in {".yaml", ".yml", ".json"} and os.path.exists(config):  # noqa: PTH110 (which never raises)
        raise _build_config_error(
            shown, "is a program, or not a configuration", "name a promptfooconfig.yaml, .yml or .json"
        )
    document = read_document(config, shown)
    value = document.value
    if not isinstance(value, dict) or not any(value.get(part) for part in _CONFIG_KEYS):
        raise _build_config_error(
            shown, "is not a promptfoo configuration", f"a configuration has one of {', '.join(_CONFIG_KEYS)}"
        )
    lists = [one for one in (value.get("providers"), value.get("targets")) if isinstance(one, list)]
    if any(len(one) > _MAX_PROVIDERS for one in lists):
        raise _build_config_error(
            shown, f"names more than {_MAX_PROVIDERS:,} providers", "import it with those that are asked"
        )
    folder = PromptfooFolder(config.resolve().parent, Path(shown).parent)
    prompts = tuple(islice(iter_prompts(document, folder), CASES))
    variables = {find_only_variable(prompt.raw) for prompt in prompts}
    providers, aside = convert_providers(document, variables.pop() if len(variables) == 1 else None)
    listed = value.get("tests")
    few = not isinstance(listed, list) or len(listed) <= CASES
    tests = tuple(islice(iter_tests(document, folder), CASES + 1)) if few else ()
    if not few or len(tests) * max(len(prompts), 1) > CASES:
        raise _build_config_error(shown, f"makes more than {CASES:,} cases", _SPLIT_HINT)
    suites, left, remarks = _build_suites(prompts, tests, folder, _find_blocker(value), chat=_uses_chat(providers))
    left += _remove_broken_patterns(suites)
    suites = [suite for suite in suites if suite.cases]
    names = {suite.number: _build_file_name(config.stem, suite.number, several=len(prompts) > 1) for suite in suites}
    files = {f"{names[suite.number]}.golden.json": _format_suite(suite) for suite in suites}
    systems = {names[suite.number]: suite.system for suite in suites if suite.system is not None}
    files |= {f"{name}.system.md": text for name, text in systems.items()}
    if any(suite.chat for suite in suites):
        aside += [
            SkippedItem(one.place, f"provider {one.name}", _MESSAGE_LIST_REASON)
            for one in providers
            if not one.is_model
        ]
        providers = [one for one in providers if one.is_model]
    targets = _build_targets(providers, tuple(systems), into) if suites else []
    if systems and not targets:
        texts = ", ".join(f"{name}.system.md" for name in systems)
        remarks = (*remarks, f"the system message is in {texts}: give it to the model with --system-prompt")
    if targets:
        files[TARGETS_FILE] = _format_targets(targets, shown)
    return ImportResult(
        display_path=shown,
        files=files,
        cases={f"{names[suite.number]}.golden.json": len(suite.cases) for suite in suites},
        skipped_cases=tuple(sorted(left, key=lambda one: (one.place.file, one.place.line))),
        targets=tuple(str(target["name"]) for target in targets),
        skipped_settings=(*aside, *_iter_skipped_settings(document)),
        remarks=remarks,
    )


def _build_config_error(shown: str, what: str, hint: str) -> GateError:
    return GateError("import-failed", f"{shown} {what}", hint)


def _find_blocker(value: dict[str, JsonValue]) -> str | None:
    """Why no case at all can be carried over."""
    if value.get("extensions"):
        return "`extensions` are programs that change tests, and programs are not run"
    return None if value.get("prompts") else "it has no prompts"


def _iter_skipped_settings(document: PromptfooFile) -> Iterator[SkippedItem]:
    """Yield the settings of the configuration that have no counterpart in Eval Gate."""
    value = document.value
    assert isinstance(value, dict)
    for key, found in value.items():
        if key not in _IGNORED_KEYS and key != "extensions" and found not in (None, [], {}, "", False):
            yield SkippedItem(document.locate(key), f"`{key[:60]}`", _SKIP_REASONS.get(key, "is not read"))


def _uses_chat(providers: list[PromptfooProvider]) -> bool:
    """Whether a prompt that is a list of messages is a conversation: to a model it is, to an agent it is a text."""
    return any(provider.is_model for provider in providers) or not providers


def _build_suites(
    prompts: tuple[PromptfooPrompt, ...],
    tests: tuple[PromptfooTest, ...],
    folder: PromptfooFolder,
    blocked: str | None,
    *,
    chat: bool,
) -> tuple[list[_ImportedSuite], list[SkippedItem], tuple[str, ...]]:
    """Build a suite for each prompt, with a case for each test that can be imported.

    Returns the suites, the tests that cannot be imported, and remarks. Raises GateError `import-failed` if the
    cases are too large.
    """
    names = _name_tests(tests)
    room = EVAL_FILE_BYTES
    left: list[SkippedItem] = []
    suites: list[_ImportedSuite] = []
    graded: set[str] = set()
    graded_cases = 0
    for number, prompt in enumerate(prompts or (PromptfooPrompt(SourcePlace("", 1), ""),), start=1):
        suite = _ImportedSuite(number)
        for test, name in zip(tests, names, strict=True):
            shown = f"{name} (prompt {number})" if len(prompts) > 1 else name
            try:
                _raise_if_blocked(blocked or test.skip_reason or prompt.skip_reason)
                checks, question = _convert_case(test, prompt, folder, chat=chat)
                _set_system_message(suite, question)
            except NotImportableError as error:
                left.append(SkippedItem(test.place, shown, str(error)))
                continue
            suite.cases.append(_build_case(name, test, question, checks))
            room -= len(question.message) + len(name)
            if room < 0:
                raise GateError("import-failed", f"the cases are larger than {EVAL_FILE_BYTES:,} bytes", _SPLIT_HINT)
            suite.places.append((test.place, shown))
            suite.untrusted_patterns.append(checks.untrusted_patterns)
            graded |= checks.graded_types
            graded_cases += bool(checks.graded_types)
        suites.append(suite)
    return suites, left, tuple(_iter_remarks(graded, graded_cases))


def _raise_if_blocked(why: str | None) -> None:
    if why is not None:
        raise NotImportableError(why)


def _convert_case(
    test: PromptfooTest, prompt: PromptfooPrompt, folder: PromptfooFolder, *, chat: bool
) -> tuple[CaseChecks, RenderedPrompt]:
    def read(name: str) -> str:
        name = name.removeprefix("file://")
        if not name.endswith(".txt"):
            raise NotImportableError("the value of an assertion is a file that is not plain text")
        text = folder.read_text(name).strip()
        if is_template(text):
            raise NotImportableError("the value of an assertion is a file with a template")
        return text

    checks = convert_assertions([*test.assertions], test.threshold, test.variables, read)
    if checks.graded_types and test.has_own_grading:
        raise NotImportableError("it has its own grading prompt (`rubricPrompt`, `factuality`)")
    return checks, render_prompt(f"{test.prefix}{prompt.raw}{test.suffix}", test.variables, chat=chat)


def _set_system_message(suite: _ImportedSuite, prompt: RenderedPrompt) -> None:
    """Set the system message of a suite from one of its cases.

    The system message belongs to the target, so it is the same for all cases. Raises NotImportableError if it
    differs from that of earlier cases.
    """
    if suite.cases and suite.system != prompt.system:
        raise NotImportableError("its system message differs from that of the cases before it")
    suite.system = prompt.system
    suite.chat = suite.chat or prompt.chat


def _build_case(name: str, test: PromptfooTest, prompt: RenderedPrompt, checks: CaseChecks) -> dict[str, JsonValue]:
    case: dict[str, JsonValue] = {"id": name}
    if test.description and test.description != name:
        case["description"] = test.description
    case["input"] = {"message": prompt.message}
    if (expect := checks.build_expect()) is not None:
        case["expect"] = expect
    if checks.rubric:
        case["rubric"] = [*checks.rubric]
    return case


def _name_tests(tests: tuple[PromptfooTest, ...]) -> list[str]:
    """Return a unique name for each test.

    The name is its `testCaseId`, its description, or its variables.
    """
    wishes = [
        _find_usable_name(test.test_case_id) or _find_usable_name(test.description) or _name_by_variables(test)
        for test in tests
    ]
    times = Counter(wishes)
    longer = [
        f"{wish} {_name_by_variables(test)}" if times[wish] > 1 and test.variables else wish
        for wish, test in zip(wishes, tests, strict=True)
    ]
    taken: set[str] = set()
    names: list[str] = []
    seen: Counter[str] = Counter()
    for first in map(_shorten_id, longer):
        name = first
        while name in taken:
            seen[first] += 1
            name = f"{first[: _MAX_ID - 10]} #{seen[first] + 1}"
        taken.add(name)
        names.append(name)
    return names


def _find_usable_name(name: str | None) -> str | None:
    """Return the name if any of its characters can stand in an id, else None."""
    return name if name and _shorten_id(name) else None


def _name_by_variables(test: PromptfooTest) -> str:
    shown = format_variables(test)
    if len(shown) > _MAX_SHOWN_VARIABLES:
        return f"{shown[:_MAX_SHOWN_VARIABLES]}… {compute_digest(dict(test.variables))[:8]}"
    return shown or "without variables"


def _shorten_id(name: str) -> str:
    """Return the name without characters that an id may not contain, shortened to the length of an id."""
    plain = "".join(" " if sign < " " or sign == "\x7f" else sign for sign in name).strip()
    return plain if len(plain) <= _MAX_ID else f"{plain[: _MAX_ID - 11]}… {compute_digest(plain)[:8]}"


def _iter_remarks(graded: set[str], cases: int) -> Iterator[str]:
    if graded:
        one = "1 case is" if cases == 1 else f"{cases:,} cases are"
        by = f"an LLM judge ({', '.join(sorted(graded))})"
        yield f"{one} graded by {by}, yes or no, with the prompt of Eval Gate: name the judge with --judge"


def _remove_broken_patterns(suites: list[_ImportedSuite]) -> list[SkippedItem]:
    """Remove the cases with patterns that JavaScript does not know: they would always fail."""
    left: list[SkippedItem] = []
    for suite in suites:
        kept: list[int] = []
        for index, patterns in enumerate(suite.untrusted_patterns):
            if any(map(find_pattern_problem, patterns)):
                left.append(SkippedItem(*suite.places[index], "its regex is not a JavaScript pattern"))
            else:
                kept.append(index)
        suite.cases = [suite.cases[index] for index in kept]
    return left


def _build_file_name(stem: str, number: int, *, several: bool) -> str:
    name = "promptfoo" if stem.startswith(_DEFAULT_STEM) and not stem.removeprefix(_DEFAULT_STEM).strip(".-_") else stem
    return f"{name}-{number}" if several else name


def _format_suite(suite: _ImportedSuite) -> str:
    document = {"metadata": {"tier": "golden"}, "cases": suite.cases}
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode() + "\n"


def _build_targets(
    providers: list[PromptfooProvider], systems: tuple[str, ...], into: str
) -> list[dict[str, JsonValue]]:
    """Build the settings of each target, once for every system message if the cases have any."""
    targets: list[dict[str, JsonValue]] = []
    for provider in providers:
        if not systems or not provider.is_model:
            targets.append(dict(provider.settings))
            continue
        for name in systems:
            own = provider.name if len(systems) == 1 else f"{provider.name}-{name}"
            path = os.path.normpath(os.path.join(into, f"{name}.system.md"))  # noqa: PTH118 (text, not a place)
            targets.append({**provider.settings, "name": own, "system_prompt_path": path})
    return targets


def _format_targets(targets: list[dict[str, JsonValue]], shown: str) -> str:
    import yaml

    head = f"# Made of {' '.join(shown.split())} by `eval-gate import promptfoo`.\n"
    return head + yaml.safe_dump({"targets": targets}, sort_keys=False, allow_unicode=True, width=110)
