"""What every setting of a target is held to, whatever its kind: numbers that are some, paths that may be there."""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, JsonValue, ValidationError

from eval_gate.config.setting import LARGEST
from eval_gate.targets.command.settings import HealthCheck
from eval_gate.targets.http.settings import HttpHealthCheck, Polling
from eval_gate.targets.kinds import KINDS
from eval_gate.targets.settings import DescribedSettings, NotSecret
from eval_gate.text.secret import Secret

DESCRIBED: list[type[DescribedSettings]] = [*(kind.settings for kind in KINDS), HealthCheck, HttpHealthCheck, Polling]
NO_NUMBERS = (float("inf"), float("-inf"), float("nan"), "inf", 10**400, 2 * LARGEST, -2 * LARGEST, True)


def kinds_in(shape: Any) -> set[Any]:
    inner = get_args(shape)
    return {kind for one in inner for kind in kinds_in(one)} if inner else {shape}


def fields(*kinds: type) -> list[tuple[type[DescribedSettings], str]]:
    """Settings that may be of these kinds, with whose they are."""
    return [
        (described, info.alias or name)
        for described in DESCRIBED
        for name, info in described.model_fields.items()
        if any(one is kind for one in kinds_in(info.annotation) for kind in kinds)
    ]


def wrong(described: type[BaseModel], key: str, value: object) -> set[str]:
    """The kinds of mistake that are found at this key."""
    try:
        described.model_validate({key: value})
    except ValidationError as error:
        return {one["type"] for one in error.errors() if one["loc"][:1] == (key,)}
    return set()


def has_unprotected_text(shape: object, marks: Sequence[object] = ()) -> bool:
    """Whether a setting of this type may hold texts that are no `Secret` and are not marked `NotSecret`.

    A reference would become a plain text there. A setting with settings of its own is answered for by these.
    """
    origin = get_origin(shape)
    if origin is Annotated:
        inner, *more = get_args(shape)
        return has_unprotected_text(inner, (*marks, *more))
    if any(isinstance(mark, NotSecret) for mark in marks) or origin is Literal:
        return False
    if isinstance(origin, type) and issubclass(origin, Secret):
        return False
    if isinstance(shape, type) and not get_args(shape):
        return shape is object or (issubclass(shape, str) and not issubclass(shape, Enum))
    members = [one for one in get_args(shape) if one is not ...]
    return not members or any(map(has_unprotected_text, members))  # without members it is JSON


def test_targets__number_that_is_none_or_too_large__is_refused_in_every_setting() -> None:
    numbers = fields(int, float)
    assert len({key for _, key in numbers}) > 15
    assert [(one, value) for one in numbers for value in NO_NUMBERS if not wrong(*one, value)] == []
    assert wrong(KINDS[0].settings, "retryableStatusCodes", [True]) == {"value_error"}


@pytest.mark.parametrize("key", ["requestTemplate", "requestFields", "query", "form", "messageTemplate"])
def test_targets__body_with_a_number_that_is_none__is_refused(key) -> None:
    (http,) = (kind.settings for kind in KINDS if kind.providers == ("http",))
    assert wrong(http, key, {"a": [{"b": float("inf")}]}) == {"value_error"}
    assert wrong(http, key, {"a": [{"b": 1e308, "message": "{{message}}"}]}) <= {"value_error"}


def test_targets__path_with_a_name_too_long_or_a_nul__is_refused_in_every_setting() -> None:
    keys = {"cwd", "logDir", "executable", "systemPromptPath", "subagentRoot", "workspaceTemplate", "vscodeCmd"}
    places = [one for one in fields(str) if one[1] in keys]
    assert {key for _, key in places} == keys
    for described, key in places:
        for text in ("a/" + "x" * 256, "a\0b"):
            assert "value_error" in wrong(described, key, text), (described, key)


def test_targets__setting_of_a_wrong_kind__is_a_mistake_and_never_a_crash() -> None:
    values: tuple[object, ...] = ([], [[]], [{}], {}, {"a": {}}, {"a": []}, True, None, 1, 1.5, "x", "a\0b")
    for described in DESCRIBED:
        for name, info in described.model_fields.items():
            for value in values:
                wrong(described, info.alias or name, value)


def test_targets__every_setting_that_holds_texts__is_a_secret_or_says_why_it_is_shown() -> None:
    """What a reference stands for is of the secret type then, also in a setting that somebody adds tomorrow."""
    seen, todo = set[type[DescribedSettings]](), [kind.settings for kind in KINDS]
    shown = []
    while todo:
        described = todo.pop()
        seen.add(described)
        for name, info in described.model_fields.items():
            shown += [(described.__name__, name)] * has_unprotected_text(info.annotation, info.metadata)
            kinds = [kind for kind in kinds_in(info.annotation) if isinstance(kind, type) and kind not in seen]
            todo += [kind for kind in kinds if issubclass(kind, DescribedSettings)]
    assert shown == []
    assert {HealthCheck, HttpHealthCheck, Polling} < seen


@pytest.mark.parametrize(
    ("shape", "open_texts"),
    [(str, True), (dict[str, str] | None, True), (JsonValue, True), (Secret[str], False), (Literal["a"], False)],
)
def test_holds_open_texts__each_kind_of_type__is_told(shape, open_texts) -> None:
    assert has_unprotected_text(shape) is open_texts
    assert not has_unprotected_text(Annotated[shape, NotSecret("a test shows it")])
