"""Result files of other tools that mean harm: each ends in a sentence that names the file, soon, and in little memory.

Measured on the whole program in a process of its own. 150 MB and 2 s are for a megabyte, above a file with one case.
"""

import json
import os
import struct
import zipfile

import pytest
import zstandard

from eval_gate.model.limits import ARCHIVE_ENTRIES, EXTERNAL_COLUMNS, EXTERNAL_FILES, EXTERNAL_SCORES
from tests.support.measured import Measured, measured

MOST_MB = 150
MOST_S = 2.0
SIZE = 990_000
HEADER = b'{"status":"success","eval":{}}'
SAMPLE = b'{"id":1,"scores":{"a":{"value":"C"}}}'
SAID = ("passed", "failed")
PROMPTFOO = b'{"evalId":"e","results":{"results":['


def many(begin: bytes, unit: bytes, end: bytes, between: bytes = b",") -> bytes:
    """The same thing again and again, a megabyte of it."""
    count = (SIZE - len(begin) - len(end)) // (len(unit) + len(between))
    return begin + between.join([unit] * count) + end


def nested(begin: bytes, end: bytes) -> bytes:
    return begin + b"[" * 100_000 + b"]" * 100_000 + end


def judged(folder, name: str, data: bytes | None = None, *options: str) -> Measured:
    if data is not None:
        (folder / name).write_bytes(data)
    return measured(folder, "check", name, "-q", "--output-dir", "out", *options)


@pytest.fixture(scope="module")
def idle(tmp_path_factory) -> Measured:
    return judged(tmp_path_factory.mktemp("idle"), "one.jsonl", b'{"id":"a","status":"passed"}\n')


def within(done: Measured, idle: Measured) -> None:
    assert "Traceback" not in done.stderr, done.stderr
    assert done.peak_mb - idle.peak_mb < MOST_MB
    assert done.cpu_s - idle.cpu_s < MOST_S


LAUGHS = b'<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuites><testcase name="&b;"/></testsuites>'
REFUSED = {
    "deep.jsonl": (
        nested(b'{"id":"a","status":"passed","input":', b"}"),
        "deep.jsonl:1: is nested deeper than 200 levels",
    ),
    "deep-second-line.jsonl": (
        nested(b'{"id":"a","status":"passed"}\n{"id":"a","status":"passed","input":', b"}"),
        "deep-second-line.jsonl:2: is nested deeper than 200 levels",
    ),
    "deep-promptfoo.json": (nested(PROMPTFOO + b'{"vars":', b"}]}}"), "is nested too deeply"),
    "deep-deepeval.json": (nested(b'{"testCases":[', b"]}"), "is nested deeper than 200 levels"),
    "digits.jsonl": (
        b'{"id":"a","status":"passed"}\n{"id":"b","score":' + b"9" * 900_000 + b"}",
        "contains a number of 900,000 digits",
    ),
    "digits.json": (PROMPTFOO + b'{"latencyMs":' + b"9" * 5_000 + b"}]}}", "is not JSON"),
    "cost.jsonl": (b'{"id":"a","status":"passed","cost_usd":1e400}', "out of range"),
    "negative.jsonl": (b'{"id":"a","status":"passed","duration_ms":-1}', "negative.jsonl:1: duration_ms"),
    "values.jsonl": (
        many(b'{"id":"b","status":"passed"}\n{"id":"a","status":"passed","checks":[', b"{}", b"]}"),
        f"values.jsonl:2: checks: has more than {EXTERNAL_SCORES:,} members",
    ),
    "long-name.jsonl": (b'{"status":"passed","id":"' + b"a" * 900_000 + b'"}', "long-name.jsonl:1: id"),
    "no-name.jsonl": (b'{"id":"","status":"passed"}', "no-name.jsonl:1: id"),
    "twice.jsonl": (many(b"", b'{"id":"a","status":"failed"}', b"", b"\n"), 'twice.jsonl:2: "a" occurs twice'),
    "scores.json": (
        many(b'{"testCases":[{"name":"a","metricsData":[', b"{}", b"]}]}"),
        f"has more than {EXTERNAL_SCORES:,} scores",
    ),
    "laughs.xml": (LAUGHS, "laughs.xml:1: has a document type"),
    "external.xml": (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuites/>', "external.xml:1: has a document type"),
    "deep.xml": (b"<testsuites>" + b"<testsuite>" * 80_000, "is nested deeper than 50 levels"),
    "attribute.xml": (
        b'<testsuites><testcase name="' + b"a" * 900_000 + b'"/></testsuites>',
        "without a name of up to",
    ),
    "encoding.xml": (
        b'<?xml version="1.0" encoding="x"?><testsuites/>',
        "encoding.xml:1: is in an unsupported encoding",
    ),
    "multi-byte.xml": (
        b'<?xml version="1.0" encoding="big5"?>\n<testsuites><testsuite name="\xff"/></testsuites>',
        "multi-byte.xml:2: is not BIG5: byte 68 is 0xFF",
    ),
    "columns.csv": (b"id,status" + b",a" * 400_000 + b"\na,passed" * 20_000, f"more than {EXTERNAL_COLUMNS:,} columns"),
    "cells.csv": (b"id,status\na,passed" + b"," * 900_000, "cells.csv:2: has more cells than columns"),
    "braces.json": (b"{" * SIZE, "is not a supported format"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_judge__a_file_that_means_harm__is_refused_by_name_soon_and_in_little_memory(name, tmp_path, idle) -> None:
    data, said = REFUSED[name]
    done = judged(tmp_path, name, data)
    assert done.code == 2, (done.stdout, done.stderr)
    assert name in done.stderr
    assert said in done.stderr
    within(done, idle)


OWN_KEYS = {
    "many-keys.jsonl": b'{"id":"a","status":"passed",' + b",".join(b'"scre%06x":1' % at for at in range(19_000)) + b"}",
    "many-lines.jsonl": b"\n".join(
        b'{"id":"%d","status":"passed","annotator":1,"session":2,"region":3,"git_branch":4,"top_p":5}' % at
        for at in range(10_000)
    ),
}


@pytest.mark.parametrize("name", OWN_KEYS)
@pytest.mark.slow
def test_judge__keys_of_somebodys_own__are_not_looked_at_again_and_again(name, tmp_path, idle) -> None:
    done = judged(tmp_path, name, OWN_KEYS[name])
    assert done.code == 0, (done.stdout, done.stderr)
    within(done, idle)


BROKE_OFF = {
    "quotes.json": PROMPTFOO + b'"' + b'\\"' * 400_000,
    "middle.json": PROMPTFOO + b'{"success":true,"vars":{"a":',
}


@pytest.mark.parametrize("name", BROKE_OFF)
def test_judge__a_file_that_ends_in_the_middle__is_no_mistake_of_who_calls(name, tmp_path, idle) -> None:
    done = judged(tmp_path, name, BROKE_OFF[name])
    assert done.code == 3, (done.stdout, done.stderr)
    assert f"{name}: ends in the middle" in done.stderr
    within(done, idle)


def zipped(entries: dict[str, bytes]) -> bytes:
    """An archive whose members are packed by zstd, and that says of each that it has one byte."""
    body, directory = b"", b""
    for name, data in entries.items():
        packed = zstandard.ZstdCompressor(level=3).compress(data)
        at, about = len(body), struct.pack("<IIIHH", 0, len(packed), 1, len(name), 0)
        body += struct.pack("<IHHHHH", 0x04034B50, 20, 0, 93, 0, 0) + about + name.encode() + packed
        directory += struct.pack("<IHHHHHH", 0x02014B50, 20, 20, 0, 93, 0, 0) + about
        directory += struct.pack("<HHHII", 0, 0, 0, 0, at) + name.encode()
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + end


def test_judge__zstd_member_that_is_larger_than_it_says__is_refused_unpacked_to_its_bound_only(tmp_path, idle) -> None:
    bomb = b'{"id":1,"input":"' + b"a" * 400_000_000 + b'"}'
    done = judged(tmp_path, "log.eval", zipped({"header.json": HEADER, "samples/1.json": bomb}))
    assert done.code == 2, done.stderr
    assert "log.eval!samples/1.json: is larger than 16,000,000 bytes" in done.stderr
    within(done, idle)


def test_judge__zip_bomb__is_refused_unpacked_to_its_bound_only(tmp_path, idle) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * 400_000_000)
    done = judged(tmp_path, "log.eval")
    assert done.code == 2, done.stderr
    assert "log.eval!header.json: is larger than" in done.stderr
    within(done, idle)


def test_judge__archive_of_very_many_entries__is_refused(tmp_path, idle) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        for number in range(ARCHIVE_ENTRIES + 1):
            archive.writestr(str(number), b"")
    done = judged(tmp_path, "log.eval")
    assert done.code == 2, done.stderr
    assert f"log.eval: has more than {ARCHIVE_ENTRIES:,} entries" in done.stderr
    within(done, idle)


def test_judge__archive_whose_names_lead_out_of_it__writes_nowhere_and_reads_its_samples(tmp_path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    names = ("samples/../../../out.json", "/samples/abs.json", "samples/C:\\x.json", "samples/\\\\host\\x.json")
    samples = {name: SAMPLE.replace(b"1", b"%d" % at, 1) for at, name in enumerate(names)}
    done = judged(inner, "log.eval", zipped({"header.json": HEADER, **samples}))
    assert done.code == 0, done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["inner"]
    assert not (inner / "C:\\x.json").exists()


@pytest.mark.parametrize("leads_to", ["outside.txt", "/dev/zero"])
def test_judge__agentv_index_that_names_a_link_out_of_its_folder__is_refused(leads_to, tmp_path) -> None:
    (tmp_path / "outside.txt").write_text("SECRET")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "answer.txt").symlink_to(tmp_path / leads_to)
    (folder / "index.jsonl").write_text(
        json.dumps({"test_id": "a", "execution_status": "ok", "answer_path": "answer.txt"})
    )
    done = judged(tmp_path, "run")
    assert done.code == 2, done.stdout
    assert "run/index.jsonl:1: names a file outside of its folder" in done.stderr


def test_judge__agentv_index_that_names_a_pipe__does_not_wait_for_it(tmp_path) -> None:
    os.mkfifo(tmp_path / "answer.txt")
    row = {"test_id": "a", "execution_status": "ok", "answer_path": "answer.txt"}
    assert judged(tmp_path, "index.jsonl", json.dumps(row).encode()).code == 0


def test_judge__pipe_or_device_in_place_of_a_file__is_not_waited_for(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    for name in ("pipe.xml", "/dev/zero"):
        done = judged(tmp_path, name)
        assert (done.code, f"{name}: is a pipe or a device, not a file" in done.stderr) == (2, True)


@pytest.mark.slow
def test_judge__folder_of_very_many_files__is_refused(tmp_path, idle) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(EXTERNAL_FILES + 1):
        (folder / f"{number}.xml").touch()
    (folder / "again").symlink_to(folder)
    done = judged(tmp_path, "many")
    assert done.code == 2
    assert f"many: contains more than {EXTERNAL_FILES:,} files" in done.stderr
    within(done, idle)


def test_judge__names_and_words_that_are_commands_and_markup__are_only_text_wherever_they_are_shown(tmp_path) -> None:
    said = "\x1b[31m\n::error::x\n##[group]x <script>alert(1)</script> ![](http://x) | `b` \u202e"
    rows = [
        {"id": "../../../etc/passwd", "suite": "C:\\x", "status": "failed", "error": said, "output": said},
        {"id": said, "suite": said, "status": "failed", "error": said, "checks": [{"name": said, "passed": False}]},
        {"id": "\x00", "suite": "..", "status": "failed", "error": "\x00"},
    ]
    forms = ("md", "html", "junit")
    reports = [part for form in forms for part in ("--report", f"{form}=report.{form}")]
    done = judged(tmp_path, "own.jsonl", "\n".join(map(json.dumps, rows)).encode(), *reports)
    assert done.code == 1, done.stderr
    shown = done.stdout + "".join((tmp_path / f"report.{form}").read_text() for form in forms)
    assert "\x1b" not in shown
    assert "\x00" not in shown
    for form in ("html", "junit"):
        assert "<script>alert" not in (tmp_path / f"report.{form}").read_text()
    assert not any(line.lstrip().startswith(("::error", "##[")) for line in done.stdout.splitlines())
    assert {file.name for file in tmp_path.iterdir()} >= {"out", "own.jsonl"}
    (run,) = [folder for folder in (tmp_path / "out").iterdir() if folder.is_dir()]
    assert all(file.parent == run for file in run.rglob("*"))


@pytest.mark.slow
def test_judge__thousands_of_trials_of_one_case__are_judged_soon(tmp_path) -> None:
    """How a few trials may go is added up, which for a thousand took eight seconds, and for more was no number."""
    passed, failed = ("".join(f'{{"id":"a","status":"{said}","trial":{n}}}\n' for n in range(5_000)) for said in SAID)
    assert judged(tmp_path, "r.jsonl", passed.encode()).code == 0
    options = ("--baseline", "latest", "--rerun-command", "cp r.jsonl {output}")
    done = judged(tmp_path, "r.jsonl", failed.encode(), *options)
    assert (done.code, "1 case that usually passes failed" in done.stdout) == (1, True), done.stdout + done.stderr
    assert done.cpu_s < 4
