"""Rules about scorers, as they are written."""

import pytest

from eval_gate.config.score_rule import parse_score_rule


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy>=0.7", "policy>=0.7"),
        (" tox icity <= .1 ", "tox icity<=0.1"),
        ("a=b>1", "a=b>1"),
        ("x=1", "x=1"),
        ("drop<-0.5", "drop<-0.5"),
    ],
)
def test_parse_rule__name_sign_and_number__are_read(text, said) -> None:
    assert str(parse_score_rule(text)) == said


@pytest.mark.parametrize("text", ["", "policy", ">=0.7", "policy>=", "policy>=high", "policy>=nan", "policy>=1e400"])
def test_parse_rule__anything_else__is_refused_with_an_example(text) -> None:
    with pytest.raises(ValueError, match=r"is not a rule such as policy>=0\.7"):
        parse_score_rule(text)


def test_rule__missing_score__does_not_hold() -> None:
    rule = parse_score_rule("x<1")
    assert [rule.is_met(value) for value in (0.5, 1.0, None)] == [True, False, False]
