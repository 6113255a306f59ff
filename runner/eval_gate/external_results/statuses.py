"""Tables of statuses: what each value that a tool can write means here.

A reader has a table for each field in which its tool says how something ended. A value that is not in it is an
evaluation error that names the value. docs/other-tools.md lists all tables.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from eval_gate.external_results.result_rows import ExecutionEnding, RowScore, classify_error_kind, to_text
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import FrozenStruct

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
    """Nobody left it out, but something kept it from running: an evaluation error."""
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
"""Of all others, the status is an error."""


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
        known = "" if self.find_meaning(value) else ", which is not a known status"
        return f"its `{self.field}` is {to_text(value)[:_MAX_SHOWN]}{known}"

    def build_ending(self, value: JsonValue, error: str | None = None) -> ExecutionEnding:
        """Build the ending that a value means. `error` is what else the tool says of it."""
        meaning = self.find_meaning(value)
        if meaning in _STATUSES:
            return ExecutionEnding(_STATUSES[meaning], error=error)
        if meaning is Meaning.AGENT_ERROR:
            return ExecutionEnding(Status.ERROR, classify_error_kind(error or ""), error or self.describe(value))
        is_said = meaning is not None and error is not None and to_text(value) in error
        said = error if is_said else ": ".join(filter(None, (self.describe(value), error)))
        words = f"it was not run: {said}" if meaning is Meaning.NOT_RUN else said
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, words)

    def apply_verdict(self, score: RowScore, value: JsonValue) -> RowScore:
        """Return a score with the verdict that a value means: a scorer without a known one could not judge."""
        meaning = self.find_meaning(value)
        if meaning is Meaning.PASSED or meaning is Meaning.FAILED:
            return score._replace(passed=meaning is Meaning.PASSED)
        if meaning is Meaning.SKIPPED or meaning is Meaning.NO_VERDICT:
            return score._replace(passed=None, decides=False)
        said = ": ".join(filter(None, (self.describe(value), score.reason)))
        return score._replace(passed=None, reason=said, grader_failed=True)


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
