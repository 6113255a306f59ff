"""The tests of a promptfoo configuration, wherever they stand, each put together as promptfoo does before it runs them.

Source: promptfoo 0.121, src/util/testCaseReader.ts and src/evaluator.ts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import prod
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.errors import GateError
from eval_gate.formats.documents import JSON, parse_document
from eval_gate.importing.imported import CannotCarryError, SourcePlace
from eval_gate.importing.promptfoo.csv_rows import rows_of_table
from eval_gate.importing.promptfoo.sources import (
    YAML_SUFFIXES,
    SourceFile,
    SourceFolder,
    WrittenValue,
    document_of,
    lines_of,
    text_of,
)
from eval_gate.importing.promptfoo.templates import DATE
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CASES
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.javascript.strings import compact_json

_KEYS: Final = frozenset({"description", "vars", "assert", "options", "threshold", "metadata", "id", "tags"})
_WHY: Final = {
    "provider": "it names a provider of its own",
    "providers": "it is for some providers only",
    "prompts": "it is for some prompts only",
    "providerOutput": "its answer is written in the test",
    "__providerOutput": "its answer is written in the test",
    "assertScoringFunction": "a function makes its score, and no program is run to check an answer",
    "$ref": "it is a reference ($ref)",
}
_OPTIONS: Final = frozenset(
    {
        *("prefix", "suffix", "provider", "disableVarExpansion", "disableDefaultAsserts", "disableConversationVar"),
        *("runSerially", "repeat", "rubricPrompt", "factuality"),
    }
)
_GRADING: Final = frozenset({"rubricPrompt", "factuality"})
_TEXTS: Final = frozenset({".txt", ".md", ".json", ".csv", ".html", ".xml", ".log", ".yaml", ".yml"})
_REFERENCES: Final = 20
"""References within references."""


class PromptfooTest(FrozenStruct):
    """A test with what holds for all, each variable with one value. `why_not` says why it cannot be carried over."""

    place: SourcePlace
    description: str
    named: str | None
    variables: Mapping[str, JsonValue]
    own: frozenset[str] = frozenset()
    """The variables that tell it from other tests: its own ones, and those of several values."""
    asserts: tuple[JsonValue, ...] = ()
    threshold: JsonValue = None
    prefix: str = ""
    suffix: str = ""
    grading: bool = False
    """Whether it says itself how a model is to grade."""
    why_not: str | None = None


def read_tests(config: SourceFile, folder: SourceFolder) -> Iterator[PromptfooTest]:
    """Every test of the configuration, of each combination of its variables. One that cannot be read says why not."""
    value = config.value
    assert isinstance(value, dict)
    try:
        default = _default_test(value.get("defaultTest"), config, folder)
        broken = None
    except CannotCarryError as error:
        default, broken = {}, str(error)
    for written in _all(config, folder):
        if isinstance(written, PromptfooTest):
            yield written
            continue
        try:
            _refuse(broken)
            yield from _expanded(_merged(written, default, config), folder)
        except CannotCarryError as error:
            yield _unread(written.place, str(error), written.value)


def _refuse(broken: str | None) -> None:
    """Raise CannotCarryError where the default test could not be read."""
    if broken is not None:
        raise CannotCarryError(f"`defaultTest`: {broken}")


def _unread(place: SourcePlace, why: str, value: JsonValue = None) -> PromptfooTest:
    return PromptfooTest(place, _description(value), _named(value), {}, why_not=why)


def _description(value: JsonValue) -> str:
    found = value.get("description") if isinstance(value, dict) else None
    return " ".join(found.split()) if isinstance(found, str) else ""


def _named(value: JsonValue) -> str | None:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    found = metadata.get("testCaseId") if isinstance(metadata, dict) else None
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None


def _all(config: SourceFile, folder: SourceFolder) -> Iterator[WrittenValue | PromptfooTest]:
    """The tests as they are written; a file of them that cannot be read is one PromptfooTest that says so."""
    value = config.value
    assert isinstance(value, dict)
    tests, scenarios = value.get("tests"), value.get("scenarios")
    yield from _listed(WrittenValue(tests, config.place("tests")), config, ("tests",), folder)
    if isinstance(scenarios, str):
        yield _unread(config.place("scenarios"), "scenarios in a file are not read")
    elif isinstance(scenarios, list):
        for index, one in enumerate(scenarios):
            yield from _scenario(one, config, ("scenarios", index), folder)
    elif tests in (None, [], ""):
        # promptfoo then asks every prompt once, with the variables of `defaultTest`
        yield WrittenValue({"description": "without tests"}, config.place("tests"))


def _listed(
    written: WrittenValue, config: SourceFile, steps: tuple[str | int, ...], folder: SourceFolder
) -> Iterator[WrittenValue | PromptfooTest]:
    """A list of tests, or what stands for one."""
    match written.value:
        case list():
            for index, one in enumerate(written.value):
                place = config.place(*steps, index)
                if isinstance(one, str):
                    yield from _of_files(one, place, folder)
                elif isinstance(one, dict) and "path" in one:
                    yield from _listed(WrittenValue(one, place), config, (*steps, index), folder)
                else:
                    yield WrittenValue(one, place)
        case str() if written.value:
            yield from _of_files(written.value, written.place, folder)
        case {"path": str() as path, **more} if not more:
            yield from _of_files(path, written.place, folder)
        case None | "":
            return
        case _:
            yield _unread(written.place, "tests that a program makes, or that are no list, are not read")


def _of_files(name: str, place: SourcePlace, folder: SourceFolder) -> Iterator[WrittenValue | PromptfooTest]:
    """The tests in the files that a path or glob leads to."""
    if "://" in name.removeprefix("file://"):
        yield _unread(place, "tests on other machines are not fetched")
        return
    try:
        for path, shown in folder.files(name.removeprefix("file://")):
            yield from _of_file(path, shown)
    except CannotCarryError as error:
        yield _unread(place, str(error))


def _of_file(path: Path, shown: str) -> Iterator[WrittenValue | PromptfooTest]:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from rows_of_table(path, shown)
    elif suffix == ".jsonl":
        yield from _of_lines(path, shown)
    elif suffix in {".json", *YAML_SUFFIXES}:
        document = document_of(path, shown)
        if isinstance(document.value, list):
            yield from (WrittenValue(one, document.place(index)) for index, one in enumerate(document.value))
        else:
            yield WrittenValue(document.value, document.place())
    else:
        raise CannotCarryError(f"{shown} is a program or a table that is not read")


def _of_lines(path: Path, shown: str) -> Iterator[WrittenValue]:
    for number, line in lines_of(text_of(path, shown)):
        yield WrittenValue(_json(line, path, SourcePlace(shown, number)), SourcePlace(shown, number))


def _json(line: str, path: Path, place: SourcePlace) -> JsonValue:
    try:
        return parse_document(JSON[".json"], line.encode(), path, place.file).value
    except GateError as error:
        raise CannotCarryError(f"{place} is no JSON") from error


def _scenario(
    one: JsonValue, config: SourceFile, steps: tuple[str | int, ...], folder: SourceFolder
) -> Iterator[WrittenValue | PromptfooTest]:
    """Each test of a scenario with each of its data."""
    place = config.place(*steps)
    if not isinstance(one, dict) or not isinstance(one.get("config"), list):
        yield _unread(place, "a scenario without a list `config` is not read")
        return
    data = one["config"]
    assert isinstance(data, list)
    tests = list(
        _listed(WrittenValue(one.get("tests"), config.place(*steps, "tests")), config, (*steps, "tests"), folder)
    )
    tests = tests or [WrittenValue({}, place)]
    if len(data) * len(tests) > CASES:
        yield _unread(place, f"it makes more than {CASES:,} tests")
        return
    for index, (each, test) in enumerate((each, test) for each in data for test in tests):
        if isinstance(test, PromptfooTest):
            yield test
        elif not isinstance(each, dict) or not isinstance(test.value, dict):
            yield _unread(config.place(*steps, "config", index // len(tests)), "a part of the scenario is no mapping")
        else:
            try:
                yield WrittenValue(_with_data(each, test.value), test.place)
            except CannotCarryError as error:
                yield _unread(test.place, str(error), test.value)


def _with_data(data: Mapping[str, JsonValue], test: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        **data,
        **test,
        **{key: {**_mapping(data, key), **_mapping(test, key)} for key in ("vars", "options", "metadata")},
        "assert": [*_list(data, "assert"), *_list(test, "assert")],
    }


def _mapping(test: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    found = test.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        why = "are in a file of their own" if key == "vars" and isinstance(found, str | list) else "is no mapping"
        raise CannotCarryError(f"its `{key}` {why}")
    return found


def _list(test: Mapping[str, JsonValue], key: str) -> list[JsonValue]:
    found = test.get(key)
    if found is not None and not isinstance(found, list):
        raise CannotCarryError(f"its `{key}` is no list")
    return found or []


def _default_test(value: JsonValue, config: SourceFile, folder: SourceFolder) -> Mapping[str, JsonValue]:
    """What holds for all tests. Raises CannotCarryError."""
    if isinstance(value, str):
        value = folder.document(value.removeprefix("file://")).value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CannotCarryError("it is no mapping")
    _refuse_keys(value)
    default = {**value, "assert": [_resolved(one, config.value) for one in _list(value, "assert")]}
    for key in ("vars", "options", "metadata"):
        _mapping(default, key)
    return default


def _refuse_keys(test: Mapping[str, JsonValue]) -> None:
    for key, found in test.items():
        if key not in _KEYS and found not in (None, [], {}, ""):
            raise CannotCarryError(_WHY.get(key, f"`{key[:60]}` of a test is not read"))


def _merged(written: WrittenValue, default: Mapping[str, JsonValue], config: SourceFile) -> PromptfooTest:
    """A test with the default test, its variables not yet taken apart. Raises CannotCarryError."""
    value = written.value
    if not isinstance(value, dict):
        raise CannotCarryError("it is no mapping")
    _refuse_keys(value)
    own = _mapping(value, "options")
    options = {**_mapping(default, "options"), **{key: option for key, option in own.items() if option != ""}}
    for key, option in options.items():
        if key not in _OPTIONS and option not in (None, False, "", [], {}):
            raise CannotCarryError(f"`options.{key[:60]}` changes what is asked or checked")
    held = [] if own.get("disableDefaultAsserts") is True else _list(default, "assert")
    threshold = value.get("threshold")
    variables = {**_mapping(default, "vars"), **_mapping(value, "vars")}
    if options.get("disableVarExpansion"):
        variables = {key: [one] if isinstance(one, list) else one for key, one in variables.items()}
    return PromptfooTest(
        place=written.place,
        description=_description(value),
        named=_named({"metadata": {**_mapping(default, "metadata"), **_mapping(value, "metadata")}}),
        variables=variables,
        own=frozenset(_mapping(value, "vars")),
        asserts=(*held, *(_resolved(one, config.value) for one in _list(value, "assert"))),
        threshold=default.get("threshold") if threshold is None else threshold,
        prefix=_text(options.get("prefix")),
        suffix=_text(options.get("suffix")),
        grading=any(options.get(key) for key in _GRADING),
    )


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise CannotCarryError("a prefix or suffix is no text")
    return value


def _resolved(one: JsonValue, config: JsonValue) -> JsonValue:
    """An assertion, or the one of the configuration that `$ref: '#/…'` leads to. Raises CannotCarryError."""
    for _ in range(_REFERENCES):
        if not isinstance(one, dict) or "$ref" not in one:
            return one
        path = one["$ref"]
        if len(one) > 1 or not isinstance(path, str) or not path.startswith("#/"):
            raise CannotCarryError("an assertion is a reference ($ref) to elsewhere")
        one = config
        for step in path.removeprefix("#/").split("/"):
            one = one.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(one, dict) else None
        if one is None:
            raise CannotCarryError(f"its reference {path[:80]} leads nowhere")
    raise CannotCarryError("an assertion is a reference ($ref) that does not end")


def _expanded(test: PromptfooTest, folder: SourceFolder) -> Iterator[PromptfooTest]:
    """The test with each combination of its variables' values. Raises CannotCarryError."""
    values = {name: _values(value) for name, value in test.variables.items()}
    count = prod(map(len, values.values()))
    test = replace(test, own=test.own | {name for name, several in values.items() if len(several) > 1})
    if count > CASES:
        raise CannotCarryError(f"its variables have more than {CASES:,} combinations")
    for one in product(*values.values()):
        variables = dict(zip(values, one, strict=True))
        try:
            read = {name: _read(value, folder) for name, value in variables.items()}
            yield replace(test, variables=read)
        except CannotCarryError as error:
            yield replace(test, variables=variables, why_not=str(error))


def _values(value: JsonValue) -> list[JsonValue]:
    """A list of texts stands for its members, every other value for itself."""
    return [*value] if isinstance(value, list) and value and isinstance(value[0], str) else [value]


def _read(value: JsonValue, folder: SourceFolder) -> JsonValue:
    """The value of a variable: a file's text where it names one. A line feed at its end is not kept."""
    if not isinstance(value, str):
        return value
    if value.startswith("package:"):
        raise CannotCarryError("a variable is made by a program, and no program is run")
    if not value.startswith("file://"):
        return value.removesuffix("\n")
    name = value.removeprefix("file://")
    suffix = PurePosixPath(name).suffix
    if suffix not in _TEXTS:
        raise CannotCarryError(f"a variable is made of {name[:100]}, which is no text")
    if suffix in YAML_SUFFIXES:
        return compact_json(folder.document(name).value)
    return folder.text(name).strip()


def shown_variables(test: PromptfooTest) -> str:
    """The variables that tell this test from others, in a line: of a single text the text itself."""
    names = test.own or test.variables.keys()
    shown = {name: _undated(value) for name, value in test.variables.items() if name in names}
    values = list(shown.values())
    if len(values) == 1 and isinstance(values[0], str) and values[0].strip():
        return values[0]
    return json.dumps(dict(islice(shown.items(), 20)), ensure_ascii=False) if shown else ""


def _undated(value: JsonValue) -> JsonValue:
    return value[DATE] if isinstance(value, dict) and DATE in value else value
