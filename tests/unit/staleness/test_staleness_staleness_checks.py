"""What the contract calls stale, in its own words, and what is only a notice."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.case import SuiteMetadata
from eval_gate.model.result import StaleKind
from eval_gate.staleness.staleness_checks import Staleness, check_staleness, format_console_line, hash_description
from eval_gate.staleness.tool_registry import ToolDefinition, ToolRegistry
from tests.support.cases import make_suite

DESCRIPTION = "Gets the weather. It's “now”."
HASH = "8090cd509fe4"


def registry(*, size: int = 1, unresolved: tuple[str, ...] = (), **tool) -> ToolRegistry:
    values = {"name": "get_weather", "description": DESCRIPTION, "version": "1.2.0"} | tool
    others = tuple(ToolDefinition(name=f"other_{number}") for number in range(size - 1))
    return ToolRegistry(source="tools.json", tools=(ToolDefinition(**values), *others), unresolved_tools=unresolved)


def checked(known: ToolRegistry | None, *, tool_name: str = "get_weather", **metadata) -> Staleness:
    recorded = {"tool_version": "1.0.0", "description_hash": HASH, "registry_size": 4} | metadata
    return check_staleness(make_suite(tool_name=tool_name, metadata=SuiteMetadata(**recorded)), known)


@pytest.mark.contract("staleness.hash.algorithm")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(DESCRIPTION, HASH, id="non-ascii"),
        pytest.param("", "e3b0c44298fc", id="empty"),
        pytest.param("\ud83d\ude00", hash_description("😀"), id="a pair of surrogates is one character"),
        pytest.param("\ud83d", hash_description("\ufffd"), id="a lone surrogate as Node writes it"),
    ],
)
def test_description_hash__text__is_twelve_digits_of_sha256(text, expected) -> None:
    assert hash_description(text) == expected


@given(st.text())
def test_description_hash__any_text__is_the_beginning_of_the_full_hash(text) -> None:
    assert hashlib.sha256(text.encode()).hexdigest().startswith(hash_description(text))
    assert len(hash_description(text)) == 12


def test_check__nothing_changed__is_silent() -> None:
    assert checked(registry(size=4)) == Staleness(
        facts=checked(registry(size=4)).facts, warnings=(), stale_facts=(), notices=()
    )
    assert not checked(registry(size=4)).is_stale


@pytest.mark.contract("staleness.metadata.absent")
def test_check__no_metadata__checks_nothing() -> None:
    found = check_staleness(make_suite(tool_name="gone"), registry(size=40))
    assert (found.warnings, found.is_stale) == ((), False)
    assert found.notices == ("Staleness was not checked: the eval file has no metadata.",)


def test_check__neither_metadata_nor_registry__has_nothing_to_say() -> None:
    found = check_staleness(make_suite(), None)
    assert (found.warnings, found.notices) == ((), ())


@pytest.mark.contract("staleness.hash.warning")
@pytest.mark.contract("staleness.hash.marked")
@pytest.mark.contract("staleness.hash.console")
def test_check__other_description__warns_to_the_letter() -> None:
    found = checked(registry(description="Gets the forecast."))
    sentence = (
        "Evals for get_weather generated against description hash 8090cd509fe4, current is 6f614e65861d. "
        "Results may not reflect current routing contract."
    )
    assert found.warnings == (sentence,)
    assert found.is_stale
    [fact] = found.stale_facts
    assert (fact.kind, fact.recorded, fact.current) == (StaleKind.DESCRIPTION, HASH, "6f614e65861d")
    assert (
        format_console_line(fact, sentence)
        == "Description hash mismatch (generated: 8090cd509fe4, current: 6f614e65861d)"
    )


@pytest.mark.contract("staleness.size.warning")
@pytest.mark.contract("staleness.size.real-number")
@pytest.mark.parametrize(
    ("recorded", "current", "grown"),
    [(6, 9, False), (6, 10, True), (5, 8, True), (5, 7, False), (4, 2, False), (0, 1, True), (1, 1, False)],
)
def test_check__registry_size__warns_above_one_and_a_half_times(recorded, current, grown) -> None:
    found = checked(registry(size=current), registry_size=recorded)
    sentence = (
        f"Registry has grown from {recorded} to {current} tools. "
        "Labeled evals may have under-specified toolsAcceptable sets."
    )
    assert found.warnings == ((sentence,) if grown else ())
    assert [(fact.kind, fact.recorded, fact.current) for fact in found.stale_facts] == (
        [(StaleKind.REGISTRY_SIZE, str(recorded), str(current))] if grown else []
    )


def test_check__unresolved_tools__count_for_the_size() -> None:
    assert "from 4 to 7 tools" in checked(registry(size=4, unresolved=("a", "b", "c"))).warnings[0]


@pytest.mark.contract("staleness.version.warning")
@pytest.mark.parametrize(
    ("recorded", "current", "differs"),
    [
        ("1.9.9", "1.0.0", False),
        ("1.0.0", "2.0.0", True),
        ("2.0.0", "1.0.0", True),
        ("v1.0", "1", False),
        ("1", "10.0.0", True),
        ("0.9.0", "1.0.0", True),
        ("01.0", "1.0", False),
        ("9" * 5000, "1.0.0", True),
    ],
)
def test_check__version__warns_when_the_first_number_differs(recorded, current, differs) -> None:
    found = checked(registry(version=current), tool_version=recorded)
    sentence = f"Tool get_weather is version {current}, evals were generated for {recorded}. Schema may have changed."
    assert found.warnings == ((sentence,) if differs else ())
    assert [fact.kind for fact in found.stale_facts] == ([StaleKind.VERSION] if differs else [])


@pytest.mark.contract("staleness.both-sides")
@pytest.mark.parametrize(
    ("recorded", "tool", "notice"),
    [
        pytest.param({"description_hash": None}, {}, "Description hash was not checked: the eval file records none."),
        pytest.param(
            {}, {"description": None}, "Description hash was not checked: the description of get_weather is not known."
        ),
        pytest.param({"registry_size": None}, {}, "Registry size was not checked: the eval file records none."),
        pytest.param({"tool_version": None}, {}, "Tool version was not checked: the eval file records none."),
        pytest.param({}, {"version": None}, "Tool version was not checked: the version of get_weather is not known."),
        pytest.param(
            {"tool_version": "next"}, {}, 'Tool version was not checked: "next" does not begin with a number.'
        ),
        pytest.param({}, {"version": "beta"}, 'Tool version was not checked: "beta" does not begin with a number.'),
    ],
)
def test_check__one_side_unknown__is_a_notice_only(recorded, tool, notice) -> None:
    found = checked(registry(**tool), **recorded)
    assert found.notices == (notice,)
    assert (found.warnings, found.is_stale) == ((), False)


@pytest.mark.contract("staleness.both-sides")
def test_check__no_registry__is_a_notice_only() -> None:
    found = checked(None)
    assert found.notices == ("Staleness was not checked: no tool registry is configured.",)
    assert (found.warnings, found.is_stale) == ((), False)


@pytest.mark.contract("staleness.tool.missing")
def test_check__tool_not_in_the_registry__warns() -> None:
    found = checked(registry(), tool_name="gone")
    assert found.warnings == (
        "Tool gone is not in the registry tools.json. Its description and version were not checked.",
    )


def test_check__tool_may_be_one_that_could_not_be_read__is_a_notice_only() -> None:
    found = checked(registry(unresolved=("goneTool",)), tool_name="gone")
    assert found.notices == (
        "Tool gone was not checked for staleness: 1 tool definition in tools.json could not be read.",
    )
    assert not found.is_stale


@pytest.mark.contract("staleness.tool.status")
@pytest.mark.parametrize(
    ("status", "warnings"),
    [
        ("deprecated", ("Tool get_weather is deprecated.",)),
        ("Removed", ("Tool get_weather is removed.",)),
        ("active", ()),
        (None, ()),
    ],
)
def test_check__status__warns_when_the_tool_has_had_its_day(status, warnings) -> None:
    assert checked(registry(status=status)).warnings == warnings


def test_check__everything_changed__keeps_the_order_of_the_contract() -> None:
    found = checked(registry(size=9, description="x", version="2.0.0", status="deprecated"))
    kinds = [StaleKind.DESCRIPTION, StaleKind.REGISTRY_SIZE, StaleKind.VERSION, StaleKind.STATUS]
    assert [fact.kind for fact in found.stale_facts] == kinds
    assert len(found.warnings) == 4
    said = [format_console_line(fact, words) for fact, words in zip(found.stale_facts, found.warnings, strict=True)]
    assert said[0].startswith("Description hash mismatch")
    assert said[1:] == [*found.warnings[1:]]


@pytest.mark.contract("staleness.facts")
@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(registry(size=3), ("1.2.0", HASH, 3, "0123456789ab"), id="all known"),
        pytest.param(registry(name="other"), (None, None, 1, "0123456789ab"), id="tool unknown"),
        pytest.param(registry(description=None), ("1.2.0", None, 1, "0123456789ab"), id="description unknown"),
        pytest.param(None, (None, None, None, "0123456789ab"), id="no registry"),
    ],
)
def test_check__facts__are_the_current_values(known, expected) -> None:
    facts = checked(known).facts
    assert (facts.tool_version, facts.description_hash, facts.registry_size, facts.eval_file_hash) == expected
