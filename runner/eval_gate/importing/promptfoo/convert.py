"""A promptfoo configuration as eval files of ours and a list of targets, with all that could not be carried over."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.importing.imported import CannotCarryError, Imported, LeftOut, SourcePlace
from eval_gate.importing.promptfoo.assertions import CaseChecks, checks_of
from eval_gate.importing.promptfoo.prompts import PromptfooPrompt, RenderedPrompt, prompts_of, render_prompt
from eval_gate.importing.promptfoo.providers import PromptfooProvider, providers_of
from eval_gate.importing.promptfoo.sources import SourceFile, SourceFolder, read_document
from eval_gate.importing.promptfoo.templates import alone, is_template
from eval_gate.importing.promptfoo.tests import PromptfooTest, read_tests, shown_variables
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CASES, EVAL_FILE_BYTES
from eval_gate.process.ending import run_async
from eval_gate.struct import Struct, field
from eval_gate.text.digest import digest
from eval_gate.text.javascript.regex import PatternMatcher

TARGETS: Final = "targets.yaml"
_USUAL: Final = "promptfooconfig"
_ID: Final = 200
_PROVIDERS: Final = 1_000
_SHOWN_VARIABLES: Final = 150
_PARTS: Final = ("prompts", "tests", "scenarios", "defaultTest")
_HARMLESS: Final = frozenset(
    {
        *("description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "$schema", "tags"),
        *("outputPath", "sharing", "writeLatestResults", "metadata", "assertionTemplates", "commandLineOptions"),
        *("evaluateOptions", "nunjucksFilters"),
    }
)
_ASIDE: Final = {
    "env": "variables are not carried over: set them where the gate runs",
    "derivedMetrics": "metrics made of scores are not carried over",
    "redteam": "red-team plugins make their tests anew each time, and have no eval files",
    "tracing": "traces are not read",
}


_IN_PARTS: Final = "import its tests in parts"
_LIST_SENT: Final = "it is sent the prompt's list of messages as a text, and a model is asked with them"


class _Suite(Struct):
    """The cases of one prompt. All of them share a system message, where they have one."""

    number: int
    cases: list[dict[str, JsonValue]] = field(default_factory=list)
    places: list[tuple[SourcePlace, str]] = field(default_factory=list)
    foreign: list[list[str]] = field(default_factory=list)
    system: str | None = None
    chat: bool = False
    """Whether its questions are taken out of a list of messages."""


def import_promptfoo(config: Path, shown: str, into: str) -> Imported:
    """What the configuration in this file becomes; nothing is written, asked or executed.

    `shown` is the file as people see it, `into` the folder that it is meant for, relative to the working directory.
    Raises GateError for a file that cannot be read, or is no promptfoo configuration.
    """
    if config.suffix not in {".yaml", ".yml", ".json"} and os.path.exists(config):  # noqa: PTH110 (which never raises)
        raise _no_config(shown, "is a program, or no configuration", "name a promptfooconfig.yaml, .yml or .json")
    document = read_document(config, shown)
    value = document.value
    if not isinstance(value, dict) or not any(value.get(part) for part in _PARTS):
        raise _no_config(shown, "is no configuration of promptfoo", f"it has one of {', '.join(_PARTS)}")
    lists = [one for one in (value.get("providers"), value.get("targets")) if isinstance(one, list)]
    if any(len(one) > _PROVIDERS for one in lists):
        raise _no_config(shown, f"names more than {_PROVIDERS:,} providers", "import it with those that are asked")
    folder = SourceFolder(config.resolve().parent, Path(shown).parent)
    prompts = tuple(islice(prompts_of(document, folder), CASES))
    variables = {alone(prompt.raw) for prompt in prompts}
    providers, aside = providers_of(document, variables.pop() if len(variables) == 1 else None)
    listed = value.get("tests")
    few = not isinstance(listed, list) or len(listed) <= CASES
    tests = tuple(islice(read_tests(document, folder), CASES + 1)) if few else ()
    if not few or len(tests) * max(len(prompts), 1) > CASES:
        raise _no_config(shown, f"makes more than {CASES:,} cases", _IN_PARTS)
    suites, left, remarks = _suites(prompts, tests, folder, _blocked(value), chat=_chat(providers))
    left += run_async(_without_broken_patterns(suites))
    suites = [suite for suite in suites if suite.cases]
    names = {suite.number: _file_name(config.stem, suite.number, several=len(prompts) > 1) for suite in suites}
    files = {f"{names[suite.number]}.golden.json": _suite_text(suite) for suite in suites}
    systems = {names[suite.number]: suite.system for suite in suites if suite.system is not None}
    files |= {f"{name}.system.md": text for name, text in systems.items()}
    if any(suite.chat for suite in suites):
        aside += [LeftOut(one.place, f"provider {one.name}", _LIST_SENT) for one in providers if not one.model]
        providers = [one for one in providers if one.model]
    targets = _targets(providers, tuple(systems), into) if suites else []
    if systems and not targets:
        texts = ", ".join(f"{name}.system.md" for name in systems)
        remarks = (*remarks, f"the system message is in {texts}: give it to the model with --system-prompt")
    if targets:
        files[TARGETS] = _targets_text(targets, shown)
    return Imported(
        shown=shown,
        files=files,
        cases={f"{names[suite.number]}.golden.json": len(suite.cases) for suite in suites},
        left_out=tuple(sorted(left, key=lambda one: (one.place.file, one.place.line))),
        targets=tuple(str(target["name"]) for target in targets),
        aside=(*aside, *_aside(document)),
        remarks=remarks,
    )


def _no_config(shown: str, what: str, hint: str) -> GateError:
    return GateError("cannot-import", f"{shown} {what}", hint)


def _blocked(value: dict[str, JsonValue]) -> str | None:
    """Why no case at all can be carried over."""
    if value.get("extensions"):
        return "`extensions` are programs that change tests before they are run, and no program is run"
    return None if value.get("prompts") else "there are no prompts"


def _aside(document: SourceFile) -> Iterator[LeftOut]:
    """Settings of the configuration that have no counterpart here."""
    value = document.value
    assert isinstance(value, dict)
    for key, found in value.items():
        if key not in _HARMLESS and key != "extensions" and found not in (None, [], {}, "", False):
            yield LeftOut(document.place(key), f"`{key[:60]}`", _ASIDE.get(key, "is not read"))


def _chat(providers: list[PromptfooProvider]) -> bool:
    """Whether a prompt that is a list of messages is a conversation: to a model it is, to an agent it is a text."""
    return any(provider.model for provider in providers) or not providers


def _suites(
    prompts: tuple[PromptfooPrompt, ...],
    tests: tuple[PromptfooTest, ...],
    folder: SourceFolder,
    blocked: str | None,
    *,
    chat: bool,
) -> tuple[list[_Suite], list[LeftOut], tuple[str, ...]]:
    """A suite for each prompt, with a case for each test that can be carried over; the tests that cannot; remarks."""
    names = _names(tests)
    room = EVAL_FILE_BYTES
    left: list[LeftOut] = []
    suites: list[_Suite] = []
    graded: set[str] = set()
    graded_cases = 0
    for number, prompt in enumerate(prompts or (PromptfooPrompt(SourcePlace("", 1), ""),), start=1):
        suite = _Suite(number)
        for test, name in zip(tests, names, strict=True):
            shown = f"{name} (prompt {number})" if len(prompts) > 1 else name
            try:
                _refuse(blocked or test.why_not or prompt.why_not)
                checks, question = _case(test, prompt, folder, chat=chat)
                _keep_system(suite, question)
            except CannotCarryError as error:
                left.append(LeftOut(test.place, shown, str(error)))
                continue
            suite.cases.append(_written(name, test, question, checks))
            room -= len(question.message) + len(name)
            if room < 0:
                raise GateError("cannot-import", f"the cases are larger than {EVAL_FILE_BYTES:,} bytes", _IN_PARTS)
            suite.places.append((test.place, shown))
            suite.foreign.append(checks.foreign)
            graded |= checks.graded
            graded_cases += bool(checks.graded)
        suites.append(suite)
    return suites, left, tuple(_remarks(graded, graded_cases))


def _refuse(why: str | None) -> None:
    if why is not None:
        raise CannotCarryError(why)


def _case(
    test: PromptfooTest, prompt: PromptfooPrompt, folder: SourceFolder, *, chat: bool
) -> tuple[CaseChecks, RenderedPrompt]:
    def read(name: str) -> str:
        name = name.removeprefix("file://")
        if not name.endswith(".txt"):
            raise CannotCarryError("an assertion's value is made of a file that is no plain text")
        text = folder.text(name).strip()
        if is_template(text):
            raise CannotCarryError("an assertion's value is a file with a template")
        return text

    checks = checks_of([*test.asserts], test.threshold, test.variables, read)
    if checks.graded and test.grading:
        raise CannotCarryError("it says itself how a model is to grade (`rubricPrompt`, `factuality`)")
    return checks, render_prompt(f"{test.prefix}{prompt.raw}{test.suffix}", test.variables, chat=chat)


def _keep_system(suite: _Suite, question: RenderedPrompt) -> None:
    """The system message is the target's, so it is one for all cases."""
    if suite.cases and suite.system != question.system:
        raise CannotCarryError("its system message is another one than that of the cases before it")
    suite.system = question.system
    suite.chat = suite.chat or question.chat


def _written(name: str, test: PromptfooTest, question: RenderedPrompt, checks: CaseChecks) -> dict[str, JsonValue]:
    case: dict[str, JsonValue] = {"id": name}
    if test.description and test.description != name:
        case["description"] = test.description
    case["input"] = {"message": question.message}
    if (expect := checks.expect()) is not None:
        case["expect"] = expect
    if checks.rubric:
        case["rubric"] = [*checks.rubric]
    return case


def _names(tests: tuple[PromptfooTest, ...]) -> list[str]:
    """A name for each test, each another one: its `testCaseId`, its description, or its variables."""
    wishes = [_said(test.named) or _said(test.description) or _by_variables(test) for test in tests]
    times = Counter(wishes)
    longer = [
        f"{wish} {_by_variables(test)}" if times[wish] > 1 and test.variables else wish
        for wish, test in zip(wishes, tests, strict=True)
    ]
    taken: set[str] = set()
    names: list[str] = []
    seen: Counter[str] = Counter()
    for first in map(_short, longer):
        name = first
        while name in taken:
            seen[first] += 1
            name = f"{first[: _ID - 10]} #{seen[first] + 1}"
        taken.add(name)
        names.append(name)
    return names


def _said(name: str | None) -> str | None:
    """The name, if anything of it can be in an id."""
    return name if name and _short(name) else None


def _by_variables(test: PromptfooTest) -> str:
    shown = shown_variables(test)
    if len(shown) > _SHOWN_VARIABLES:
        return f"{shown[:_SHOWN_VARIABLES]}… {digest(dict(test.variables))[:8]}"
    return shown or "without variables"


def _short(name: str) -> str:
    """The name without what no id may hold."""
    plain = "".join(" " if sign < " " or sign == "\x7f" else sign for sign in name).strip()
    return plain if len(plain) <= _ID else f"{plain[: _ID - 11]}… {digest(plain)[:8]}"


def _remarks(graded: set[str], cases: int) -> Iterator[str]:
    if graded:
        one = "1 case is" if cases == 1 else f"{cases:,} cases are"
        yield f"{one} graded by a model ({', '.join(sorted(graded))}), yes or no, by our prompt: name one with --judge"


async def _without_broken_patterns(suites: list[_Suite]) -> list[LeftOut]:
    """Take out the cases whose own patterns are none: they would keep the file from being loaded."""
    left: list[LeftOut] = []
    matcher = PatternMatcher()
    known: dict[str, str | None] = {}
    try:
        for suite in suites:
            kept: list[int] = []
            for index, foreign in enumerate(suite.foreign):
                for pattern in foreign:
                    if pattern not in known:
                        known[pattern] = await matcher.compile_error(pattern)
                if any(known[pattern] for pattern in foreign):
                    left.append(LeftOut(*suite.places[index], "its regex is no pattern of JavaScript's"))
                else:
                    kept.append(index)
            suite.cases = [suite.cases[index] for index in kept]
    finally:
        await matcher.aclose()
    return left


def _file_name(stem: str, number: int, *, several: bool) -> str:
    name = "promptfoo" if stem.startswith(_USUAL) and not stem.removeprefix(_USUAL).strip(".-_") else stem
    return f"{name}-{number}" if several else name


def _suite_text(suite: _Suite) -> str:
    document = {"metadata": {"tier": "golden"}, "cases": suite.cases}
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode() + "\n"


def _targets(providers: list[PromptfooProvider], systems: tuple[str, ...], into: str) -> list[dict[str, JsonValue]]:
    """The settings of each target: with each system message, where there are some."""
    targets: list[dict[str, JsonValue]] = []
    for provider in providers:
        if not systems or not provider.model:
            targets.append(dict(provider.settings))
            continue
        for name in systems:
            own = provider.name if len(systems) == 1 else f"{provider.name}-{name}"
            path = os.path.normpath(os.path.join(into, f"{name}.system.md"))  # noqa: PTH118 (text, not a place)
            targets.append({**provider.settings, "name": own, "system_prompt_path": path})
    return targets


def _targets_text(targets: list[dict[str, JsonValue]], shown: str) -> str:
    import yaml

    head = f"# Made of {' '.join(shown.split())} by `eval-gate import promptfoo`.\n"
    return head + yaml.safe_dump({"targets": targets}, sort_keys=False, allow_unicode=True, width=110)
