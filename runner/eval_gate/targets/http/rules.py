"""Which answers or events are meant, and where in them something is."""

from __future__ import annotations

from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.paths import MISSING, Condition, Missing, Path
from eval_gate.targets.http.settings import EventRule
from eval_gate.text.foreign.quote import quote
from eval_gate.text.javascript.strings import as_text


class EventMatch(FrozenStruct):
    """Everything of this name and with this in it. Without a path it is the whole of it that is meant."""

    event: str | None = None
    where: Condition | None = None
    path: Path | None = None
    id: Path | None = None

    @classmethod
    def of(cls, rule: EventRule) -> EventMatch:
        """As it is described."""
        return cls(
            rule.event,
            None if rule.where is None else Condition.parse(rule.where),
            None if rule.path is None else Path.parse(rule.path),
            None if rule.id is None else Path.parse(rule.id),
        )

    def at(self, value: JsonValue) -> JsonValue | Missing:
        """What is meant, in an answer or event that is."""
        if self.path is None:
            return value
        if self.path.gathers:
            return self.path.all(value).values or MISSING
        return self.path.first_value(value)


def failure_in(value: JsonValue, rules: tuple[EventMatch, ...], name: str = "") -> TargetError | None:
    """The error that the answer, or its event of this name, says it ended with."""
    for rule in rules:
        if (rule.event is None or rule.event == name) and (rule.where is None or rule.where(value)):
            found = rule.at(value)
            if isinstance(found, Missing) or found is None:
                if rule.where is None and rule.event is None:
                    continue  # only what stands there says that it failed
                found = value
            said = quote(as_text(found).encode("utf-8", "replace"))
            return TargetError(f"agent error: {said}", fault=TargetFault.REFUSED)
    return None
