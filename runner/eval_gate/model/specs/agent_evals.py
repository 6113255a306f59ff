"""The assertions of Agent Evals suites, as data: one class for each `type`, with the fields of the suite file.

Source: Agent Evals, "Assertion Types" and "File Assertions"; `fileNotExists` is used by its suites and not in its text
(agent-evals behaviour, B-07).
"""

from typing import Final, Literal

from eval_gate.model.base import JsonValue, as_json
from eval_gate.model.specs.evaluator import NamedEvaluatorSpec
from eval_gate.model.specs.match_all_patterns import matches_every_text


class SuiteAssertion(NamedEvaluatorSpec, kw_only=True):
    """One assertion of a suite; its own `description`, where it has one, is its name in results."""

    @property
    def as_written(self) -> dict[str, JsonValue]:
        """The assertion under the suite file's names, with its defaults."""
        others = {"weight", "label", "negate", "floor"}
        fields = {name: value for name, value in as_json(self).items() if name not in others}
        return fields | ({"description": self.label} if self.label else {})


class OutputContains(SuiteAssertion, kw_only=True):
    """The value is in the answer."""

    type: Literal["contains"] = "contains"
    value: str
    case_sensitive: bool = True

    @property
    def checks_nothing(self) -> bool:
        """Whether the value is empty: it is in every answer."""
        return not self.value


class OutputMatches(SuiteAssertion, kw_only=True):
    """The ECMAScript pattern finds something in the answer."""

    type: Literal["matchesRegex"] = "matchesRegex"
    pattern: str
    flags: str = ""

    @property
    def checks_nothing(self) -> bool:
        """Whether the pattern finds something in every answer."""
        return matches_every_text(self.pattern, self.flags)


class OutputEquals(SuiteAssertion, kw_only=True):
    """The answer is this text, or this value when it is read as JSON."""

    type: Literal["equals"] = "equals"
    expected: JsonValue


class OutputJsonPath(SuiteAssertion, kw_only=True):
    """The value at a dotted path of the answer, which is read as JSON, is this one."""

    type: Literal["jsonPath"] = "jsonPath"
    path: str
    expected: JsonValue


class FileExists(SuiteAssertion, kw_only=True):
    """There is such a file, or folder, when the agent is done."""

    type: Literal["fileExists"] = "fileExists"
    path: str


class FileNotExists(SuiteAssertion, kw_only=True):
    """There is neither such a file nor such a folder when the agent is done."""

    type: Literal["fileNotExists"] = "fileNotExists"
    path: str


class FileContains(SuiteAssertion, kw_only=True):
    """The value is in the file."""

    type: Literal["fileContains"] = "fileContains"
    path: str
    value: str
    case_sensitive: bool = True


class FileJsonPath(SuiteAssertion, kw_only=True):
    """The value at a dotted path of a JSON file is this one."""

    type: Literal["fileJsonPath"] = "fileJsonPath"
    path: str
    json_path: str
    expected: JsonValue


ABOUT_FILES: Final = (FileExists, FileNotExists, FileContains, FileJsonPath)
"""Those that look at a path in the agent's folder."""
