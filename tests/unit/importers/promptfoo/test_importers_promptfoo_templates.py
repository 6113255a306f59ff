"""promptfoo's templates, as far as they only name variables."""

from __future__ import annotations

import pytest

from eval_gate.importers.import_result import NotImportableError
from eval_gate.importers.promptfoo.templates import find_only_variable, render_template, render_values

VARIABLES = {
    "name": "Ada",
    "order": {"id": 4711, "lines": ["nine", {"price": 1.0}]},
    "yes": True,
    "none_": None,
    "inner": "{{name}}",
    "brace": "{",
    "day": {"$date": "2026-11-21"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{name}}", "Ada"),
        ("{{ name }}, {{name}}!", "Ada, Ada!"),
        ("{{order.id}} {{order.lines[0]}} {{order.lines[1].price}}", "4711 nine 1"),
        ("{{yes}}", "true"),
        ("} }} { %}", "} }} { %}"),
    ],
)
def test_rendered__names_alone__are_their_values(text, expected) -> None:
    assert render_template(text, VARIABLES) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ name | upper }}", "{{ name | upper }} does more than name a variable"),
        ("{% if name %}x{% endif %}", "{% if name %} does more"),
        ("{# remark #}", "{# remark #} does more"),
        ("{{ name", "does more"),
        ("{{name}}{{", "does more"),
        ("{{- name -}}", "does more"),
        ("{{ true }}", "does more"),
        ("{{ range }}", "does more"),
        ("{{nobody}}", "nothing defines {{nobody}}"),
        ("{{order.nobody}}", "nothing defines"),
        ("{{order.lines[7]}}", "nothing defines"),
        ("{{name.length}}", "nothing defines"),
        ("{{order}}", "is a mapping"),
        ("{{order.lines}}", "is a list"),
        ("{{none_}}", "is empty"),
        ("{{inner}}", "is a template itself"),
        ("{{day}}", "is a date without quotes"),
        ("{{brace}}{seed:a}}", "form a template"),
        ("{{env.KEY}}", "is an environment variable"),
    ],
)
def test_rendered__everything_else__is_refused_with_the_reason(text, why) -> None:
    with pytest.raises(NotImportableError) as refused:
        render_template(text, VARIABLES)
    assert why in str(refused.value)


def test_rendered__a_value_many_times__ends_before_it_fills_the_memory() -> None:
    with pytest.raises(NotImportableError, match="becomes longer than"):
        render_template("{{a}}" * 100_000, {"a": "x" * 100_000})


def test_rendered_within__a_value__renders_its_texts_and_no_keys() -> None:
    assert render_values({"{{name}}": ["{{name}}", 1]}, VARIABLES) == {"{{name}}": ["Ada", 1]}


@pytest.mark.parametrize(("text", "name"), [("{{ q }}", "q"), (" {{q}} ", "q"), ("{{q}}!", None), ("q", None)])
def test_alone__a_text_that_is_one_variable__is_its_name(text, name) -> None:
    assert find_only_variable(text) == name
