"""tests/contract/conformance.md is true: every rule has a test, every mark has a rule, the page is the newest."""

from tests.support import conformance


def test_rules__each__has_a_test() -> None:
    held = conformance.marks()
    assert [rule.id for rule in conformance.rules() if rule.id not in held] == []


def test_marks__each__names_a_rule() -> None:
    known = {rule.id for rule in conformance.rules()}
    assert sorted(set(conformance.marks()) - known) == []


def test_rules__ids__are_unique() -> None:
    ids = [rule.id for rule in conformance.rules()]
    assert sorted({rule_id for rule_id in ids if ids.count(rule_id) > 1}) == []


def test_page__as_written__is_the_newest() -> None:
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.page(), "run: make conformance"
