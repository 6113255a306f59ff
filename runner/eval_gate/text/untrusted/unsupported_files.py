"""Files of eval tools that are not supported: recognize them and say how to use them here."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Set
from itertools import islice
from typing import Final, NamedTuple

from eval_gate.errors import PAGES
from eval_gate.model.base import JsonValue
from eval_gate.text.quoting import quote_name

_FILE_MARK: Final = "FILE"
_MAX_KEYS: Final = 200
"""Keys of a document that are looked at, and members of its lists."""
_MAX_SHOWN: Final = 5
_MAX_NAME: Final = 40
_OWN_RESULTS: Final = (
    f"write one line of JSON for each case (`id`, and `status` or `score`): {PAGES}/other-tools.md#own-results"
)
_CASE_LISTS: Final = ("eval_cases", "cases")
"""Lists whose members are looked at: ADK's, and that which JSON lines are read as."""
_JSON_KEY: Final = re.compile(r'"((?:[^"\\]|\\.){1,60})"\s*:')
_FIRST_WORD: Final = re.compile(r"(?:<[?!][^>]*>\s*)*(<[\w-]+|TAP(?= version ))")
_YAML_KEY: Final = re.compile(r"^([A-Za-z_][\w.-]{0,59}):(?:\s|$)", re.MULTILINE)
_YAML_INNER: Final = re.compile(r"^[ ]{0,20}(?:[ ]|- )[ ]{0,4}([A-Za-z_][\w.-]{0,59}):(?:\s|$)", re.MULTILINE)


class UnsupportedFile(NamedTuple):
    """A file of an unsupported tool, and what to do with it."""

    description: str
    remedy: str
    is_certain: bool = False
    """No eval file of a known format has such keys."""
    reason: str = "which is not supported"
    """Why it is not read, as the rest of a sentence."""
    is_result: bool = False
    """`eval-gate check` reads files of this kind, and if it does not read this one, its form is another."""

    def describe_alternative(self, file: str) -> str:
        """Describe the file and its alternative as the end of a sentence; `file` is the name as people see it."""
        return f"is {self.description}, {self.reason}: {self.remedy.replace(_FILE_MARK, shlex.quote(file))}"


PROMPTFOO: Final = UnsupportedFile(
    "a promptfoo configuration",
    "run it with promptfoo (`promptfoo eval -c FILE -o out.json`), then `eval-gate check out.json`; or write AgentV or "
    "tool-forge cases",
    is_certain=True,
)
AGENTV_5: Final = UnsupportedFile(
    "an eval file of AgentV 5",
    "run it with AgentV (`agentv eval FILE --output out`), then `eval-gate check out`",
    is_certain=True,
)
ADK: Final = UnsupportedFile(
    "an eval set of ADK",
    "run it with ADK (`adk eval AGENT FILE`), then `eval-gate check AGENT/.adk/eval_history`",
    is_certain=True,
)
_OWN_RESULT: Final = UnsupportedFile(
    "a result of Eval Gate",
    "show it with `eval-gate report`, or compare with it: `--baseline FILE`",
    is_certain=True,
    reason="which is not an eval file",
)


def _describe_result(description: str) -> UnsupportedFile:
    way = "compare it with `eval-gate check FILE`"
    return UnsupportedFile(description, way, is_certain=True, reason="which is not an eval file", is_result=True)


def _describe_convertible(description: str, heading: str) -> UnsupportedFile:
    """Describe a results file for which a page has the way to one that `eval-gate check` reads."""
    way = f"convert it, see {PAGES}/convert-results.md#{heading}"
    return UnsupportedFile(description, way, is_certain=True, reason="which is not read directly")


_FILES_BY_KEYS: Final[tuple[tuple[frozenset[str], UnsupportedFile], ...]] = tuple(
    (frozenset(marks.split()), kind)
    for alternatives, kind in (
        ("runId timestamp suites | runId timestamp stalenessWarnings | runId timestamp path", _OWN_RESULT),
        ("runs suites levels | evalFile caseId trial", _OWN_RESULT),
        ("eval_cases eval_set_id | eval_cases eval_id conversation | query expected_tool_use", ADK),
        ("eval_set_result_id eval_case_results", _describe_result("a result of ADK")),
        ("evalId results | promptIdx testCase", _describe_result("a result of promptfoo")),
        ("testCases metricsScores", _describe_result("a result of DeepEval")),
        ("eval status plan", _describe_result("a log of Inspect")),
        ("cases failures analyses", _describe_result("a report of pydantic-evals")),
        ("test_id execution_status | index_path status counts", _describe_result("a result of AgentV")),
        ("prompts providers | prompts targets | prompts tests | providers tests | redteam targets", PROMPTFOO),
        ("rows metrics", _describe_result("a result of Azure AI Evaluation")),
        ("root_span_id | input output expected scores", _describe_result("a result of Braintrust")),
        ("_xact_id", UnsupportedFile("an export of Braintrust", _OWN_RESULTS, is_certain=True)),
        ("run example evaluation_results | example_id execution_time", _describe_result("a result of LangSmith")),
        ("config suites errors stats", _describe_convertible("a JSON report of Playwright", "junit-xml")),
        ("numTotalTests testResults", _describe_convertible("a JSON report of Jest or Vitest", "junit-xml")),
        ("stats tests pending failures passes", _describe_convertible("a JSON report of Mocha", "junit-xml")),
        ("elements keyword uri", _describe_convertible("a JSON report of Cucumber", "junit-xml")),
        ("<robot", _describe_convertible("an output.xml of Robot Framework", "junit-xml")),
        ("TAP", _describe_convertible("TAP", "junit-xml")),
        ("reportFormat results", _describe_convertible("a CTRF report", "ctrf")),
        ("doc_id filtered_resps", _describe_convertible("a log of lm-evaluation-harness", "lm-evaluation-harness")),
        ("trace_id assessments state", _describe_convertible("a result of MLflow", "mlflow")),
        ("example_id repetition_number", _describe_convertible("an experiment of Phoenix", "phoenix")),
        ("user_input response", _describe_convertible("a result of ragas", "ragas")),
        ("results errored_count pass_rate", _describe_convertible("a result of Giskard", "giskard")),
    )
    for marks in alternatives.split("|")
)
"""Keys that only files of this tool have together, at the top of a document or in the members of its lists.

The only key of a text that is neither JSON nor a table is its first word.
"""


def identify_document(document: JsonValue) -> UnsupportedFile | None:
    """Identify a document of a tool whose files are not supported; None if it is unknown."""
    top = _list_keys(document[0] if isinstance(document, list) and document else document)
    lists = document.items() if isinstance(document, dict) else ()
    inner = {
        name: {key for member in islice(members, _MAX_KEYS) for key in _list_keys(member)}
        for name, members in islice(lists, _MAX_KEYS)
        if isinstance(members, list)
    }
    cases = inner.get("tests", set())
    return _match_keys(top, top.union(*(inner.get(name, ()) for name in _CASE_LISTS)), cases)


def identify_text(text: str) -> UnsupportedFile | None:
    """Identify an unsupported file by the beginning of its text, of whatever format; None if unknown."""
    word = _FIRST_WORD.match(text)
    if word or text.startswith("<"):
        return _match_keys({word[1]}, {word[1]}) if word else None
    value = _parse_document(text)
    if value is not None:
        return identify_document(value)
    if text[:1] in {"{", "["}:
        keys = {match[1] for match in _JSON_KEY.finditer(text)}
        return _match_keys(keys, keys, keys)
    columns = {step for name in _split_columns(text) for step in (name, name.partition(".")[0])}
    top = {match[1] for match in _YAML_KEY.finditer(text)}
    return _match_keys(columns, columns) or _match_keys(top, top | {match[1] for match in _YAML_INNER.finditer(text)})


def describe_content(text: str) -> str:
    """Describe what the beginning of an unknown file looks like, with its keys or columns."""
    if text.startswith("<"):
        return "XML"
    value = _parse_document(text)
    if isinstance(value, list):
        return "a list in JSON" + (
            _format_names("whose members have", value[0] if value and isinstance(value[0], dict) else ())
        )
    if isinstance(value, dict) or text.startswith("{"):
        keys = value if isinstance(value, dict) else (match[1] for match in _JSON_KEY.finditer(text))
        return "a mapping in JSON" + _format_names("with", keys)
    if text.startswith("["):
        return "a list in JSON" + _format_names("whose members have", (match[1] for match in _JSON_KEY.finditer(text)))
    if "\0" in text:
        return "a binary file"
    if len(columns := _split_columns(text)) > 1:
        return "a table" + _format_names("with the columns", columns)
    if names := [match[1] for match in _YAML_KEY.finditer(text)]:
        return "YAML" + _format_names("with", names)
    return "a text that is neither JSON nor XML nor a table"


def _match_keys(top: Set[str], keys: Set[str], cases: Set[str] = frozenset()) -> UnsupportedFile | None:
    match = next((kind for marks, kind in _FILES_BY_KEYS if marks <= keys), None)
    if match is PROMPTFOO and ("name" in top or "id" in cases):  # which promptfoo's own have not
        return AGENTV_5
    return match


def _list_keys(value: JsonValue) -> set[str]:
    return set(islice(value, _MAX_KEYS)) if isinstance(value, dict) else set()


def _parse_document(text: str) -> JsonValue:
    """Parse the list or mapping in the text, or in its first line if each line is a document."""
    for part in (text, text.partition("\n")[0]):
        try:
            value: JsonValue = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def _split_columns(text: str) -> list[str]:
    return [name.strip().strip('"') for name in text.partition("\n")[0][:10_000].split(",")]


def _format_names(prefix: str, names: Iterable[str]) -> str:
    """Format the first few names, such as ` with "a", "b"`; nothing without a name."""
    quoted = [quote_name(name) for name in islice(dict.fromkeys(names), _MAX_SHOWN) if 0 < len(name) <= _MAX_NAME]
    return f" {prefix} {', '.join(quoted)}" if quoted else ""
