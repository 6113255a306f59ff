"""What is wrong with a shape, in words for people."""

import re
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from pydantic_core._pydantic_core import list_all_errors

from eval_gate.model.limits import MISTAKES
from eval_gate.text.sources.validation_errors import describe_error, describe_value, format_field_path, list_errors


class Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    text: str = ""
    number: int = 0
    some: Annotated[list[str], Field(min_length=1)] = ["a"]
    word: Literal["equals", "contains"] = "equals"
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    yes: bool = True


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"text": 1}, "expected text, got the number 1"),
        ({"number": "1"}, 'expected a whole number, got text "1"'),
        ({"some": "a"}, 'expected a list, got text "a"'),
        ({"some": []}, "needs at least 1, got an empty list"),
        ({"some": [None]}, "expected text, got null"),
        ({"word": "equal"}, "expected 'equals' or 'contains', got text \"equal\" (did you mean \"equals\"?)"),
        ({"share": -1}, "must be >= 0.0, got the number -1"),
        ({"share": 2}, "must be <= 1.0, got the number 2"),
        ({"yes": "true"}, 'expected true or false, got text "true"'),
        ({"more": {}}, "unknown key"),
    ],
    ids=str,
)
def test_sentence__wrong_value__says_expected_and_got(value, said) -> None:
    with pytest.raises(ValidationError) as caught:
        Shape.model_validate(value)
    assert describe_error(caught.value.errors()[0]) == said


def test_kind_of__long_text_or_number__is_described_and_not_cut() -> None:
    assert describe_value("abc") == 'text "abc"'
    assert describe_value("x" * 100) == "a text of 100 characters"
    assert describe_value(10**30) == "a number of 31 digits"


def test_field_path__step_that_looks_like_a_key__is_masked() -> None:
    assert format_field_path(["a", "sk-QwXaBcDZkEfGhIVjJkLmN99", 1]) == "a.***[1]"


def test_field_path__steps__reads_like_code() -> None:
    assert format_field_path(["cases", 2, "expect", "toolsCalled"]) == "cases[2].expect.toolsCalled"


def wrong(number: int) -> ValidationError:
    """So many mistakes in one list."""
    with pytest.raises(ValidationError) as caught:
        Shape.model_validate({"some": [None] * number})
    return caught.value


def test_mistakes__as_many_as_can_be_named__are_named() -> None:
    found = list_errors(wrong(MISTAKES))
    assert [format_field_path(one["loc"]) for one in found] == [f"some[{at}]" for at in range(MISTAKES)]


def test_mistakes__one_more__is_only_their_number() -> None:
    (only,) = list_errors(wrong(MISTAKES + 1))
    assert format_field_path(only["loc"]) == ""
    assert describe_error(only).startswith(f"{MISTAKES + 1:,} mistakes")


def test_sentence__part_of_a_number_where_words_may_stand_for_numbers__is_no_whole_number() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python(1.5)
    assert describe_error(caught.value.errors()[0]) == "expected a whole number, got the number 1.5"


def test_sentence__required_key_that_is_not_there__is_missing() -> None:
    class Needs(BaseModel):
        name: str

    with pytest.raises(ValidationError) as caught:
        Needs.model_validate({})
    (only,) = list_errors(caught.value)
    assert (format_field_path(only["loc"]), describe_error(only)) == ("name", "is missing")


class Lax(BaseModel):
    """What texts may stand for, as in settings of targets whose values come from variables."""

    seconds: float | None = None
    times: int | None = None
    yes: bool = False
    codes: frozenset[int] = frozenset()
    few: Annotated[list[int], Field(max_length=1)] = []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"seconds": "soon"}, 'expected a number, got text "soon"'),
        ({"times": "often"}, 'expected a whole number, got text "often"'),
        ({"times": 1.5}, "expected a whole number, got the number 1.5"),
        ({"times": "9" * 5_000}, "has too many digits"),
        ({"yes": "perhaps"}, 'expected true or false, got text "perhaps"'),
        ({"yes": 7}, "expected true or false, got the number 7"),
        ({"codes": 429}, "expected a list, got the number 429"),
        ({"few": [1, 2]}, "has more than 1"),
    ],
    ids=str,
)
def test_sentence__text_that_stands_for_no_such_value__says_expected_and_got(value, said) -> None:
    with pytest.raises(ValidationError) as caught:
        Lax.model_validate(value)
    assert describe_error(caught.value.errors()[0]) == said


@pytest.mark.parametrize("known", list_all_errors(), ids=lambda known: known["type"])
def test_sentence__every_error_of_the_library__is_not_in_its_words(known) -> None:
    context = known.get("example_context") or {}
    detail = ErrorDetails(type=known["type"], loc=(), msg=known["example_message_python"], input=3, ctx=context)
    said = describe_error(detail)
    assert said
    assert not re.search(r"(?i)input should|value error|valid |unable to parse|pydantic|instance|tag ", said)
