"""Specifications of Agent Evals assertions: one class for each `type`, with the fields of the suite file.

Source: Agent Evals, "Assertion Types" and "File Assertions". Its suites use `fileNotExists`, but its text does not
mention it (agent-evals behaviour, B-07).
"""

from typing import Final, Literal

from eval_gate.model.base import JsonValue, as_json
from eval_gate.model.specs.evaluator import NamedEvaluatorSpec
from eval_gate.model.specs.match_all_patterns import matches_every_text


class SuiteAssertion(NamedEvaluatorSpec, kw_only=True):
    """One assertion of a suite. Its `description`, if it has one, is its name in results."""

    @property
    def as_written(self) -> dict[str, JsonValue]:
        """The assertion with the keys of the suite file and its defaults."""
        common = {"weight", "label", "negate", "floor"}
        fields = {name: value for name, value in as_json(self).items() if name not in common}
        return fields | ({"description": self.label} if self.label else {})


class OutputContains(SuiteAssertion, kw_only=True):
    """The response contains the value."""

    type: Literal["contains"] = "contains"
    value: str
    case_sensitive: bool = True

    @property
    def checks_nothing(self) -> bool:
        """Whether the value is empty: every response contains it."""
        return not self.value


class OutputMatches(SuiteAssertion, kw_only=True):
    """The ECMAScript pattern matches somewhere in the response."""

    type: Literal["matchesRegex"] = "matchesRegex"
    pattern: str
    flags: str = ""

    @property
    def checks_nothing(self) -> bool:
        """Whether the pattern matches every response."""
        return matches_every_text(self.pattern, self.flags)


class OutputEquals(SuiteAssertion, kw_only=True):
    """The response equals this text, or, parsed as JSON, this value."""

    type: Literal["equals"] = "equals"
    expected: JsonValue


class OutputJsonPath(SuiteAssertion, kw_only=True):
    """The response, parsed as JSON, has this value at a dotted path."""

    type: Literal["jsonPath"] = "jsonPath"
    path: str
    expected: JsonValue


class FileExists(SuiteAssertion, kw_only=True):
    """The file or folder exists when the agent is done."""

    type: Literal["fileExists"] = "fileExists"
    path: str


class FileNotExists(SuiteAssertion, kw_only=True):
    """Neither a file nor a folder exists at this path when the agent is done."""

    type: Literal["fileNotExists"] = "fileNotExists"
    path: str


class FileContains(SuiteAssertion, kw_only=True):
    """The file contains the value."""

    type: Literal["fileContains"] = "fileContains"
    path: str
    value: str
    case_sensitive: bool = True


class FileJsonPath(SuiteAssertion, kw_only=True):
    """The JSON file has this value at a dotted path."""

    type: Literal["fileJsonPath"] = "fileJsonPath"
    path: str
    json_path: str
    expected: JsonValue


ABOUT_FILES: Final = (FileExists, FileNotExists, FileContains, FileJsonPath)
"""Assertions about a path in the agent's folder."""
