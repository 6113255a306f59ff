"""Names in results of other tools: read exactly or refused, and several results of one name by one rule."""

import json
from pathlib import Path

import pytest

from tests.support.program import gate

LINES = ("id,status,output", "hours,passed,Open.", "résumé,{},Ein Lebenslauf.", "parcel,passed,At the depot.", "")
XML = (
    '<?xml version="1.0" encoding="{encoding}"?><testsuite name="s"><testcase name="hours"/>'
    '<testcase name="résumé">{inner}</testcase><testcase name="parcel"/></testsuite>'
)


def check(folder: Path, now: str, base: str, *options: str) -> tuple[int, str]:
    """`check NOW --baseline BASE`: its exit code and all that it says."""
    done = gate(folder, "check", now, "--baseline", base, "--fail-on", "regressions", *options)
    return done.returncode, f"{done.stdout}{done.stderr}"


def table(status: str, separator: str = ",") -> str:
    return "\r\n".join(LINES).format(status).replace(",", separator)


def promptfoo(status: bool) -> str:
    results = [
        {"testIdx": at, "promptIdx": 0, "provider": {"id": "bot"}, "success": passed, "vars": {"q": name}}
        for at, (name, passed) in enumerate((("hours", True), ("résumé", status), ("parcel", True)))
    ]
    return json.dumps({"evalId": "e", "results": {"results": results}}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "base", "now", "line"),
    [
        ("table.csv", table("passed"), table("failed"), ":3: is not UTF-8: byte 40 is 0xE9"),
        ("out.json", promptfoo(status=True), promptfoo(status=False), ":1: is not UTF-8"),
        ("lines.jsonl", '{"id": "é", "status": "passed"}\n', '{"id": "é", "status": "failed"}\n', ":1: is not UTF-8"),
        ("out.xml", XML.format(encoding="utf-8", inner=""), XML.format(encoding="utf-8", inner="<failure/>"), ":1: "),
    ],
)
def test_check__file_is_not_utf_8__is_refused_with_its_place_or_read_in_its_encoding(
    tmp_path, name, base, now, line
) -> None:
    (tmp_path / f"base-{name}").write_text(base, encoding="utf-8")
    (tmp_path / name).write_bytes(now.encode("cp1252"))
    code, said = check(tmp_path, name, f"base-{name}")
    assert (code, f"{name}{line}" in said, "--encoding" in said) == (2, True, True), said
    code, said = check(tmp_path, name, f"base-{name}", "--encoding", "windows-1252")
    assert (code, "\ufffd" in said, "é" in said, "1 regression" in said) == (1, False, True, True), said


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "shift_jis", "gb18030"])
def test_check__xml_declares_its_encoding__is_read_in_it(tmp_path, encoding) -> None:
    name = "résumé" if encoding in {"iso-8859-1", "windows-1252"} else "会社"
    for file, inner in (("base.xml", ""), ("now.xml", "<failure/>")):
        text = XML.format(encoding=encoding, inner=inner).replace("résumé", name)
        (tmp_path / file).write_bytes(text.encode(encoding))
    code, said = check(tmp_path, "now.xml", "base.xml")
    assert (code, f"REGRESSIONS (1): {name}" in said) == (1, True), said


def test_check__declaration_says_utf_16_of_a_file_in_utf_8__is_read(tmp_path) -> None:
    """As .NET's StringWriter declares it."""
    for file, inner in (("base.xml", ""), ("now.xml", "<failure/>")):
        (tmp_path / file).write_text(XML.format(encoding="utf-16", inner=inner), encoding="utf-8")
    assert check(tmp_path, "now.xml", "base.xml")[0] == 1


def test_check__encoding_that_nobody_knows__is_a_mistake(tmp_path) -> None:
    (tmp_path / "a.csv").write_text(table("passed"), encoding="utf-8")
    code, said = check(tmp_path, "a.csv", "a.csv", "--encoding", "zip")
    assert (code, "--encoding: 'zip' is not a known encoding" in said) == (2, True), said
