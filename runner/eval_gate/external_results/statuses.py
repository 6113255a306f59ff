"""Meanings of statuses, thrown errors and scores of other tools.

A reader has a table for each status field of its tool. A value that the table does not have is an evaluation error that
names the value. docs/other-tools.md lists all tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
    classify_error_kind,
    parse_number,
    require_name,
    shorten_name,
    to_text,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import FrozenStruct
from eval_gate.text.digest import compute_fingerprint

_MISSING: Final = "-"
"""How a table writes a field that is missing or null."""
_MAX_SHOWN: Final = 40


class Meaning(StrEnum):
    """What a status means here."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Its author left it out."""
    AGENT_ERROR = "agent error"
    EVALUATION_ERROR = "evaluation error"
    """A part that prepares or scores broke: nothing is known of the agent."""
    NOT_RUN = "not run"
    """Its author did not leave it out, but it did not run: an evaluation error."""
    NO_VERDICT = "no verdict"
    """Another field decides."""
    INCOMPLETE = "incomplete"
    """The tool did not finish: the whole file is refused."""


_STATUSES: Final = {
    Meaning.PASSED: Status.PASSED,
    Meaning.FAILED: Status.FAILED,
    Meaning.SKIPPED: Status.SKIPPED,
    Meaning.NO_VERDICT: None,
}
"""The status of every other meaning is an error."""


class StatusTable(FrozenStruct):
    """All values of a field of a tool's results, with their meanings."""

    tool: str
    """The tool, with the version whose source or schema lists the values."""
    field: str
    where: str
    """Which of the fields of this name it is about."""
    meanings: dict[str, Meaning]

    def find_meaning(self, value: JsonValue) -> Meaning | None:
        """Return what a value means, or None for one that the tool is not known to write."""
        if isinstance(value, int):  # asked of every execution, and the slowest to turn into text
            return self.meanings.get(str(value).lower())
        return self.meanings.get(value if isinstance(value, str) else to_text(value))

    def describe(self, value: JsonValue) -> str:
        """Return a value in words, for an error."""
        if not to_text(value):
            return f"it has no `{self.field}`"
        remark = "" if self.find_meaning(value) else ", which is not a known status"
        return f"its `{self.field}` is {to_text(value)[:_MAX_SHOWN]}{remark}"

    def build_ending(self, value: JsonValue, error: str | None = None) -> ExecutionEnding:
        """Build the ending that a value means. `error` is what else the tool says of it."""
        meaning = self.find_meaning(value)
        if meaning in _STATUSES:
            return ExecutionEnding(_STATUSES[meaning], error=error)
        if meaning is Meaning.AGENT_ERROR:
            return ExecutionEnding(Status.ERROR, classify_error_kind(error or ""), error or self.describe(value))
        is_quoted = meaning is not None and error is not None and to_text(value) in error
        message = error if is_quoted else ": ".join(filter(None, (self.describe(value), error)))
        words = f"it was not run: {message}" if meaning is Meaning.NOT_RUN else message
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, words)

    def apply_verdict(self, score: RowScore, value: JsonValue) -> RowScore:
        """Return a score with the verdict that a value means: a scorer without a known one could not judge."""
        meaning = self.find_meaning(value)
        if meaning is Meaning.PASSED or meaning is Meaning.FAILED:
            return score._replace(passed=meaning is Meaning.PASSED)
        if meaning is Meaning.SKIPPED or meaning is Meaning.NO_VERDICT:
            return score._replace(passed=None, decides=False)
        reason = ": ".join(filter(None, (self.describe(value), score.reason)))
        return score._replace(passed=None, reason=reason, grader_failed=True)


def parse_tables(text: str) -> tuple[StatusTable, ...]:
    """Parse tables: a line with tool, field and where it is, then lines with values by meaning. `-` is a missing value.

    Raises ValueError for a meaning that does not exist.
    """
    tables: list[StatusTable] = []
    for line in filter(None, text.split("\n")):
        if line.startswith(" "):
            for rule in line.split(";"):
                meaning, _, values = rule.strip().partition(": ")
                for value in values.split(", "):
                    tables[-1].meanings["" if value == _MISSING else value] = Meaning(meaning)
        else:
            tool, _, words = line.partition(": ")
            field, _, where = words.partition(" ")
            tables.append(StatusTable(tool, field, where, {}))
    return tuple(tables)


_EXCEPTION: Final = re.compile(r"(?!\S*Assert)[\w.]*(Error|Exception|Timeout|Refused)\b")
"""How the message of a test begins that an exception ended."""
_UNREACHABLE: Final = re.compile(
    r"""ECONNREFUSED | \bENOTFOUND\b | EAI_AGAIN | EHOSTUNREACH | connection\ refused | could\ not\ resolve
      | actively\ refused | name\ or\ service\ not\ known | \bAPIConnectionError\b | ConnectionRefusedError
      | RateLimit(?:ed|Error|Exceeded) | AuthenticationError | PermissionDeniedError
      | insufficient_quota | rate_limit_error | RESOURCE_EXHAUSTED
      | \b(?:HTTP(?:/[\d.]+)?|status(?:[ _]?code)?|error\ code)[\s:=]{1,3}(?:401|402|403|407|429|529)\b
      | \b401\ Unauthorized | \b402\ Payment | \b403\ Forbidden | \b407\ Proxy | \b429\ Too\ Many
      | \b(?:401|402|403|407|429|529)\ Client\ Error
      | (?:^|:\s)(?:401|402|403|407|429|529)\s?(?:$|[{-])
      | (?:^|:\s)unauthori[sz]ed\.?$
      | \brate.?limit(?:s|ed)?(?:\ was|\ has\ been)?\ (?:exceeded|reached|hit) | \bexceeded\ .{0,20}\bquota\b
      | \bquota\ (?:was\ |is\ |has\ been\ )?exceeded\b
      | \b(?:invalid|incorrect)\b.{0,20}\bapi.?key | \bno\ api\ key
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""What clients say of no connection, credentials and limits. A number or a word alone may be what the test is about."""
_MAX_SEARCHED: Final = 2_000


def is_exception(message: str) -> bool:
    """Whether a message begins with the name of an exception that no assertion throws."""
    return _EXCEPTION.match(message) is not None


def classify_thrown_error(message: str) -> ErrorKind:
    """Classify what was thrown: agent unreachable or agent error."""
    return ErrorKind.AGENT_UNREACHABLE if _UNREACHABLE.search(message[:_MAX_SEARCHED]) else ErrorKind.AGENT_ERROR


def build_score(table: StatusTable, name: str, value: JsonValue, reason: str | None = None) -> RowScore:
    """Build the score of a value: a number needs a rule, and what is none means what the table says."""
    if (number := parse_number(value)) is not None:
        return RowScore(name[:200], number, None, reason)
    score = RowScore(name[:200], float(value) if isinstance(value, bool) else None, None, reason)
    return table.apply_verdict(score, value)


def let_verdicts_decide(scores: Sequence[RowScore]) -> tuple[RowScore, ...]:
    """Let numbers without a verdict decide nothing, unless by a rule, where another scorer has a verdict."""
    if all(one.passed is None for one in scores):
        return tuple(scores)
    return tuple(one._replace(decides=one.passed is not None or one.grader_failed) for one in scores)


def end_execution(
    scores: Sequence[RowScore],
    agent_error: str | None = None,
    *,
    tools: ExecutionEnding = ExecutionEnding(None),  # noqa: B008 (a tuple, which is immutable)
    scorer: str = "evaluator",
) -> ExecutionEnding:
    """Build the ending of an execution from the agent's error, else from its scores and the tool's own ending.

    `scorer` is the tool's word for what scores.
    """
    if agent_error is not None:
        return ExecutionEnding(Status.ERROR, classify_error_kind(agent_error), agent_error)
    if tools.status is None and not any(
        one.grader_failed or one.passed is not None or one.value is not None for one in scores
    ):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, f"no {scorer} gave a score")
    failed = "; ".join(f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is False)
    return build_ending(tools._replace(error=tools.error or failed or None), [one for one in scores if one.decides])


class PromptedCase(NamedTuple):
    """A case of a tool that tells cases apart by their prompts. `expectation` is None where nothing is expected."""

    suite: str
    prompt: str
    expectation: JsonValue
    named_by: str
    """The tool's word for the prompt."""


def build_prompted_row(
    case: PromptedCase, ending: ExecutionEnding, place: RowPlace, name: JsonValue = None
) -> ResultRow:
    """Build the row of an execution, named by the prompt, and by what is expected where others have the same prompt.

    `name` is the case's own name, where the tool has one. Raises GateError if there is neither it nor a prompt.
    """
    suite, prompt, expectation, named_by = case
    case_name = require_name(shorten_name(prompt) if name is None else name, place, named_by)
    content = compute_fingerprint([prompt, expectation])
    return ResultRow(
        suite=suite,
        id=case_name,
        place=place,
        **ending._asdict(),
        prompt=prompt,
        expectation=() if expectation is None else (to_text(expectation),),
        content=content,
        digests=digest_prompt("input", prompt, expectation),
        rerun_name=prompt if name is None else None,
        longer_name=None if expectation is None else f"{case_name[:300]} → {shorten_name(to_text(expectation))}",
        named_by=named_by,
    )
