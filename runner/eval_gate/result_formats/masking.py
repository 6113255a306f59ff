"""The door through which results of other tools come in: without the secrets that are set here.

A tool's answers, errors and names may repeat a key that it was given. What is asked for a digest only stays as it is.
"""

from __future__ import annotations

from eval_gate.result_formats.rows import ResultRow
from eval_gate.text.redact import Redactor


def masked(row: ResultRow, redact: Redactor) -> ResultRow:
    """The row with every text masked. Its tool is still asked by the name that it knows."""
    name = redact(row.id)
    return row._replace(
        suite=redact(row.suite),
        id=name,
        place=row.place._replace(field=row.place.field and redact(row.place.field)),
        scores=tuple(one._replace(name=redact(one.name), reason=_maybe(one.reason, redact)) for one in row.scores),
        question=redact(row.question),
        expectation=tuple(map(redact, row.expectation)),
        answer=_maybe(row.answer, redact),
        error=_maybe(row.error, redact),
        calls=tuple(redact.model(call) for call in row.calls),
        location=row.location and redact.model(row.location),
        tags=tuple(map(redact, row.tags)),
        description=redact(row.description),
        target=_maybe(row.target, redact),
        again=row.again or (row.id if name != row.id else None),
        longer=_maybe(row.longer, redact),
        unstable=_maybe(row.unstable, redact),
    )


def _maybe(text: str | None, redact: Redactor) -> str | None:
    return text and redact(text)
