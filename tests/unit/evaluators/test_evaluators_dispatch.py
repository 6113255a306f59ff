"""Every evaluator that a case can have is found, and what is not needed is not loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from eval_gate.evaluators.dispatch import DIALECTS, _get_evaluator
from eval_gate.model.specs.evaluator import EvaluatorSpec


def kinds(base: type[EvaluatorSpec] = EvaluatorSpec) -> Iterator[type[EvaluatorSpec]]:
    """All classes of evaluators that are no base of others."""
    below = base.__subclasses__()
    for kind in below:
        yield from kinds(kind)
    if not below:
        yield base


@pytest.mark.parametrize("kind", sorted(kinds(), key=lambda kind: kind.__name__))
def test_evaluate__every_kind_of_evaluator__has_somebody_who_judges_it(kind) -> None:
    assert callable(_get_evaluator(kind))


def test_evaluate__kind_that_nobody_knows__is_a_defect_of_ours() -> None:
    with pytest.raises(LookupError, match="no dialect has an evaluator EvaluatorSpec"):
        _get_evaluator(EvaluatorSpec)


@pytest.mark.slow
def test_evaluate__assertion_of_tool_forge__loads_no_other_dialect_and_no_judge() -> None:
    code = (
        "import sys; from eval_gate.evaluators import aggregation, dispatch;"
        "from eval_gate.model.specs import evaluator as specs;"
        "dispatch._get_evaluator(specs.MaxTokens); "
        "print(sorted(name for name in sys.modules if name.endswith('.table')),"
        "[name for name in sys.modules if 'evaluators.judge' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"['eval_gate.evaluators.{DIALECTS[0]}.table']", "[]"]
