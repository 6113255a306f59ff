"""Files of eval tools that are not read here: whose a document is by its keys, and how its evals get to the gate."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Set
from itertools import islice
from typing import Final, NamedTuple

from eval_gate.errors import PAGES
from eval_gate.model.base import JsonValue
from eval_gate.text.quoting import quoted_name

_FILE: Final = "FILE"
_KEYS: Final = 200
"""Keys of a document that are looked at, and members of its lists."""
_SHOWN: Final = 5
_NAME: Final = 40
_OWN_RESULTS: Final = (
    f"write one line of JSON for each case (`id`, and `status` or `score`): {PAGES}/tools/own-results.md"
)
_CASES: Final = ("eval_cases", "cases")
"""Lists whose members are looked at: ADK's, and that which JSON lines are read as."""
_JSON_KEY: Final = re.compile(r'"((?:[^"\\]|\\.){1,60})"\s*:')
_YAML_KEY: Final = re.compile(r"^([A-Za-z_][\w.-]{0,59}):(?:\s|$)", re.MULTILINE)
_YAML_INNER: Final = re.compile(r"^[ ]{0,20}(?:[ ]|- )[ ]{0,4}([A-Za-z_][\w.-]{0,59}):(?:\s|$)", re.MULTILINE)


class OtherToolFile(NamedTuple):
    """A file of another tool: what it is, and what to do instead of naming it here."""

    what: str
    way: str
    certain: bool = False
    """No eval file of a known format has such keys."""

    def instead(self, file: str) -> str:
        """The end of a sentence about this file, by its name as people see it."""
        return f"is {self.what}, which is not read here: {self.way.replace(_FILE, shlex.quote(file))}"


PROMPTFOO: Final = OtherToolFile(
    "a promptfoo configuration",
    "`eval-gate import promptfoo FILE` makes eval files of it; or let promptfoo run it (`-o out.json`), then "
    "`eval-gate judge out.json`",
    certain=True,
)
AGENTV_5: Final = OtherToolFile(
    "an eval file of AgentV 5",
    "let AgentV run it (`agentv eval FILE --output out`), then `eval-gate judge out`",
    certain=True,
)
_ADK_WAY: Final = (
    "let ADK's AgentEvaluator run it in a test of pytest (`pytest --junitxml out.xml`), then `eval-gate judge out.xml`"
)
ADK: Final = OtherToolFile("an eval set of ADK", _ADK_WAY, certain=True)
BRAINTRUST: Final = OtherToolFile("an export of Braintrust", _OWN_RESULTS, certain=True)
_AZURE_DATA: Final = OtherToolFile("data of Azure AI Evaluation", f"run it there; of each row, {_OWN_RESULTS}")
_BRAINTRUST_SUMMARY: Final = OtherToolFile("a summary of Braintrust", f"it has no cases; {_OWN_RESULTS}")
_LANGSMITH: Final = OtherToolFile("an export of LangSmith", _OWN_RESULTS)
_KNOWN: Final[tuple[tuple[frozenset[str], OtherToolFile], ...]] = tuple(
    (frozenset(marks.split()), known)
    for marks, known in (
        ("eval_cases eval_set_id", ADK),
        ("eval_cases eval_id conversation", ADK),
        ("query expected_tool_use", ADK),
        ("eval_set_result_id eval_case_results", OtherToolFile("a result of ADK", _ADK_WAY)),
        ("prompts providers", PROMPTFOO),
        ("prompts targets", PROMPTFOO),
        ("prompts tests", PROMPTFOO),
        ("providers tests", PROMPTFOO),
        ("redteam targets", PROMPTFOO),
        ("rows metrics", OtherToolFile("a result of Azure AI Evaluation", f"of each row, {_OWN_RESULTS}")),
        ("query response", _AZURE_DATA),
        (
            "query ground_truth",
            OtherToolFile("data of Azure AI Evaluation", f"run it there; of each row, {_OWN_RESULTS}"),
        ),
        ("experimentName scores", _BRAINTRUST_SUMMARY),
        ("experiment_name project_name", _BRAINTRUST_SUMMARY),
        ("span_attributes", BRAINTRUST),
        ("root_span_id", BRAINTRUST),
        ("_xact_id", BRAINTRUST),
        ("input expected scores", OtherToolFile("a result of Braintrust", _OWN_RESULTS)),
        ("input expected metadata", OtherToolFile("data of Braintrust", f"run it there; {_OWN_RESULTS}")),
        ("reference_example_id", _LANGSMITH),
        ("reference_outputs", _LANGSMITH),
        ("evaluation_results example", OtherToolFile("a result of LangSmith", _OWN_RESULTS)),
        ("inputs outputs", _LANGSMITH),
    )
)
"""Keys that only files of this tool have together, at the top of a document or in the members of its lists."""


def other_file(document: JsonValue) -> OtherToolFile | None:
    """Whose file this document is, where it is one of a tool that is not read; None where nobody knows."""
    top = _keys(document[0] if isinstance(document, list) and document else document)
    lists = document.items() if isinstance(document, dict) else ()
    inner = {
        name: {key for member in islice(members, _KEYS) for key in _keys(member)}
        for name, members in islice(lists, _KEYS)
        if isinstance(members, list)
    }
    cases = inner.get("tests", set())
    return _known(top, top.union(*(inner.get(name, ()) for name in _CASES)), cases)


def other_text(text: str) -> OtherToolFile | None:
    """The same of the beginning of a file, whatever it is written in."""
    value = _parsed(text)
    if value is not None:
        return other_file(value)
    if text[:1] in {"{", "["}:
        keys = {match[1] for match in _JSON_KEY.finditer(text)}
        return _known(keys, keys, keys)
    columns = {step for name in _columns(text) for step in (name, name.partition(".")[0])}
    top = {match[1] for match in _YAML_KEY.finditer(text)}
    return _known(columns, columns) or _known(top, top | {match[1] for match in _YAML_INNER.finditer(text)})


def looks_like(text: str) -> str:
    """What the beginning of a file that nobody knows looks like, in words: its keys or columns, or that it has none."""
    value = _parsed(text)
    if isinstance(value, list):
        return "a list in JSON" + (
            _named("whose members have", value[0] if value and isinstance(value[0], dict) else ())
        )
    if isinstance(value, dict) or text.startswith("{"):
        keys = value if isinstance(value, dict) else (match[1] for match in _JSON_KEY.finditer(text))
        return "a mapping in JSON" + _named("with", keys)
    if text.startswith("["):
        return "a list in JSON" + _named("whose members have", (match[1] for match in _JSON_KEY.finditer(text)))
    if "\0" in text:
        return "a binary file"
    if len(columns := _columns(text)) > 1:
        return "a table" + _named("with the columns", columns)
    if names := [match[1] for match in _YAML_KEY.finditer(text)]:
        return "YAML" + _named("with", names)
    return "a text that is neither JSON nor XML nor a table"


def _known(top: Set[str], keys: Set[str], cases: Set[str] = frozenset()) -> OtherToolFile | None:
    found = next((known for marks, known in _KNOWN if marks <= keys), None)
    if found is PROMPTFOO and ("name" in top or "id" in cases):  # which promptfoo's own have not
        return AGENTV_5
    return found


def _keys(value: JsonValue) -> set[str]:
    return set(islice(value, _KEYS)) if isinstance(value, dict) else set()


def _parsed(text: str) -> JsonValue:
    """The document, or its first line where each is one; None where that is no JSON."""
    for part in (text, text.partition("\n")[0]):
        try:
            value: JsonValue = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def _columns(text: str) -> list[str]:
    return [name.strip().strip('"') for name in text.partition("\n")[0][:10_000].split(",")]


def _named(before: str, names: Iterable[str]) -> str:
    """` with "a", "b"`, of the first few names; nothing where there is none."""
    shown = [quoted_name(name) for name in islice(dict.fromkeys(names), _SHOWN) if 0 < len(name) <= _NAME]
    return f" {before} {', '.join(shown)}" if shown else ""
