"""The values that tokens in expected texts need, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.config.settings import DEFAULT_SEED_MANIFEST
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs import evaluator as specs
from eval_gate.text.tokens import SOURCES, TokenData, find_tokens

NO_SEED: Final = f"there is no seed manifest ({DEFAULT_SEED_MANIFEST}, or what seedManifestPath names)"
_NO_SOURCE: Final = {
    "seed": NO_SEED,
    "snapshot": "no snapshot is captured (snapshotPath or snapshotCommand says from what)",
}


def missing_sources(suites: Sequence[EvalSuite], data: TokenData) -> Iterator[str]:
    """A sentence for each source of values that is not there, and that tokens of these cases need."""
    for source in SOURCES:
        if data.of(source) is None:
            needing = sum(_has_token(case, f"{{{{{source}:") for suite in suites for case in suite.cases)
            if needing:
                cases = "1 case has" if needing == 1 else f"{needing:,} cases have"
                tokens = f"{cases} {{{{{source}:…}}}} tokens"
                yield f"{_NO_SOURCE[source]}, and {tokens}: what needs one is not compared"


def texts_with_tokens(spec: specs.EvaluatorSpec) -> Iterator[str]:
    """The texts of an assertion that may hold tokens."""
    match spec:
        case specs.ResponseContains() | specs.ResponseNotContains():
            values: Sequence[JsonValue] = spec.values
        case specs.ResponseContainsAny():
            values = [member for group in spec.groups for member in group]
        case specs.ToolParams():
            values = [
                value
                for check in spec.checks
                for value in (check.value if isinstance(check.value, list) else [check.value])
            ]
        case _:
            return
    yield from (value for value in values if isinstance(value, str) and "{{" in value)


def _has_token(case: EvalCase, beginning: str) -> bool:
    return any(
        token.startswith(beginning)
        for spec in case.evaluators
        for text in texts_with_tokens(spec)
        for token in find_tokens(text)
    )
