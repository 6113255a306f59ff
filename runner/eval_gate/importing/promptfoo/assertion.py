"""One assertion of promptfoo, and its values as texts: rendered, from a file, or several with commas between them.

Source: promptfoo 0.121, src/assertions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eval_gate.importing.imported import CannotCarryError
from eval_gate.importing.promptfoo.templates import as_text, render_template
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct


class PromptfooAssertion(FrozenStruct):
    """One assertion that decides. `read` gives the text of a `file://` value."""

    kind: str
    inverse: bool
    value: JsonValue
    threshold: JsonValue
    metric: str | None
    variables: Mapping[str, JsonValue]
    read: Callable[[str], str]

    def text(self) -> str:
        """The value as one text with something in it. Raises CannotCarryError."""
        return self.filled(self.written(self.value))

    def texts(self) -> list[str]:
        """The values of a list, or of a text with commas. Raises CannotCarryError."""
        value = self.value
        if isinstance(value, str):
            found = comma_separated(self.written(value))
        elif isinstance(value, list):
            found = [self.written(member) for member in value]
        else:
            raise CannotCarryError(f"{self.kind} has no list of values")
        if not found:
            raise CannotCarryError(f"{self.kind} has no values")
        return [self.filled(one) for one in found]

    def written(self, value: JsonValue) -> str:
        """One value as a text, which may be empty. Raises CannotCarryError."""
        if isinstance(value, str):
            if value.startswith("package:"):
                raise CannotCarryError("its value is a program, and no program is run")
            return self.read(value) if value.startswith("file://") else render_template(value, self.variables)
        return as_text(value, f"the value of {self.kind}")

    def filled(self, text: str) -> str:
        """The text. Raises CannotCarryError where there is nothing in it."""
        if not text:
            raise CannotCarryError(f"{self.kind} has an empty value")
        return text


def comma_separated(text: str) -> list[str]:
    """The fields of `a, "b, c", d`. Raises CannotCarryError for what promptfoo refuses."""
    found: list[str] = []
    at = 0
    while at < len(text):
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1
        if at >= len(text):
            break
        if text[at] == '"':
            field_, at = _quoted(text, at + 1)
            while at < len(text) and text[at].isspace():
                at += 1
            if at < len(text) and text[at] != ",":
                raise CannotCarryError("its list of values is not what promptfoo reads: a comma is missing")
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            field_, at = text[at:end].strip(), end
        found.append(field_)
    return found


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What stands in quotes from here on, and where it goes on behind them."""
    parts: list[str] = []
    while at < len(text):
        pair = text[at : at + 2]
        if pair in {'\\"', "\\\\", '""'}:
            parts.append(pair[1])
            at += 2
        elif text[at] == '"':
            return "".join(parts), at + 1
        else:
            parts.append(text[at])
            at += 1
    raise CannotCarryError("its list of values is not what promptfoo reads: a quote is missing")
