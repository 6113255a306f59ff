"""The Agent Evals suite as it is written: one declaration for reading, for error messages and for editors.

Source: Agent Evals, "Creating Evaluation Suites", "Assertion Types", "File Assertions"; agent-evals behaviour 3.1.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, JsonValue

from eval_gate.formats.reader import CaseId, Text, Wire
from eval_gate.model.agent import MAX_TURNS, SUITE_MODEL, FileTool
from eval_gate.model.limits import CASES

Milliseconds = Annotated[float, Field(gt=0, le=86_400_000, allow_inf_nan=False)]


class _Assertion(Wire):
    """What all assertions may have."""

    description: str | None = None


class Contains(_Assertion):
    """The answer contains a text."""

    type: Literal["contains"]
    value: str
    case_sensitive: bool = True


class MatchesRegex(_Assertion):
    """The answer matches an ECMAScript regular expression."""

    type: Literal["matchesRegex"]
    pattern: str
    flags: str = Field(default="", description="Of dgimsuvy each at most once, and not u with v.")


class Equals(_Assertion):
    """The answer is this text; anything but a text is compared with the answer read as JSON."""

    type: Literal["equals"]
    expected: JsonValue


class JsonPath(_Assertion):
    """A value within the answer, which is read as JSON, is this one."""

    type: Literal["jsonPath"]
    path: Text = Field(description="Keys and indexes between dots, such as $.response.items.0.status.")
    expected: JsonValue


class FileExists(_Assertion):
    """There is this file, or folder."""

    type: Literal["fileExists"]
    path: Text


class FileNotExists(_Assertion):
    """There is neither this file nor this folder."""

    type: Literal["fileNotExists"]
    path: Text


class FileContains(_Assertion):
    """The file contains a text."""

    type: Literal["fileContains"]
    path: Text
    value: str
    case_sensitive: bool = True


class FileJsonPath(_Assertion):
    """A value within the JSON file is this one."""

    type: Literal["fileJsonPath"]
    path: Text
    json_path: Text
    expected: JsonValue


AnyAssertion = Contains | MatchesRegex | Equals | JsonPath | FileExists | FileNotExists | FileContains | FileJsonPath
ASSERTIONS: Final = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(AnyAssertion)}
"""Every assertion by its `type`."""


class Case(Wire):
    """One prompt, and what must be true when the agent is done."""

    id: CaseId
    name: Text
    description: str | None = None
    prompt: Text
    assertions: list[Annotated[AnyAssertion, Field(discriminator="type")]] = Field(default_factory=list)
    timeout: Milliseconds | None = Field(default=None, description="Milliseconds; else defaults.timeout, else 30000.")
    tags: list[Text] = Field(default_factory=list)


class Agent(Wire):
    """Who answers all cases of the suite."""

    name: Text
    model: Text = Field(description=f"Fixed to {SUITE_MODEL}, unless another is chosen for the run.")
    instructions: str
    tools: list[FileTool] = Field(default_factory=list)
    max_turns: Annotated[int, Field(gt=0)] = MAX_TURNS


class Defaults(Wire):
    """What holds for cases that do not say."""

    timeout: Milliseconds | None = None


class Suite(Wire):
    """A suite file."""

    name: Text
    description: str | None = None
    version: str = "1.0.0"
    agent: Agent
    defaults: Defaults = Defaults()
    cases: Annotated[list[Case], Field(min_length=1, max_length=CASES)]
