"""Edit cases in the text of an eval file, and leave everything else in the file unchanged.

The new text is read before it replaces the file: it must have exactly the changed cases, and the reader of its format
must accept it as strictly as the old text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import yaml

from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import format_path
from eval_gate.files.writing import write_atomically
from eval_gate.formats.agentv.detection import find_list_name
from eval_gate.formats.base import Dialect, Document, EvalSource, ReadOptions
from eval_gate.formats.discovery import find_notation, recognize_document
from eval_gate.formats.documents import parse_document, read_bytes
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.struct import FrozenStruct
from eval_gate.text.sources.json_edit import JsonLayout, rewrite_json
from eval_gate.text.sources.value_edit import is_same_value
from eval_gate.text.sources.yaml_edit import YamlLayout, rewrite_yaml

ANY_TARGET: Final = "the target of the run"
"""Stands for the target of a run, which does not change how a file is read."""
_LINES: Final = ".jsonl"
RawCase: TypeAlias = dict[str, JsonValue]


class CaseFile(FrozenStruct):
    """An eval file: its bytes, the parsed document and the suite."""

    path: Path
    root: Path
    data: bytes
    document: JsonValue
    suite: EvalSuite
    is_strict: bool
    """Whether the file has no problem with `--strict` either."""

    __repr__ = object.__repr__

    @property
    def shown_as(self) -> str:
        """The name of the file for people."""
        return self.suite.file

    def find_raw_case(self, case: EvalCase) -> RawCase:
        """Find a case as it is written. Raises GateError for a case in another file."""
        return self.find_raw_cases([case])[case.id]

    def find_raw_cases(self, cases: Iterable[EvalCase]) -> dict[str, RawCase]:
        """Find cases as they are written, by id. Raises GateError for a case in another file."""
        by_id = {raw["id"]: raw for raw in self.list_raw_cases() if isinstance(raw, dict) and "id" in raw}
        raw_cases: dict[str, RawCase] = {}
        for case in cases:
            if case.id not in by_id:
                raise self._build_absence_error(case)
            raw_cases[case.id] = by_id[case.id]
        return raw_cases

    def find_place(self, case: EvalCase) -> int:
        """Find the number of a case in the list of its file. Raises GateError for a case in another file."""
        for place, raw in enumerate(self.list_raw_cases()):
            if isinstance(raw, dict) and raw.get("id") == case.id:
                return place
        raise self._build_absence_error(case)

    def _build_absence_error(self, case: EvalCase) -> GateError:
        return _build_edit_error(case.location.file, f"{case.id} is not in {self.shown_as} itself")

    def replace_cases(self, cases: Mapping[str, RawCase | None]) -> CaseFile:
        """Return the file with these cases replaced by id, or removed if None, unwritten. Raises GateError."""
        self.find_raw_cases(case for case in self.suite.cases if case.id in cases)
        old: list[JsonValue] = [*self.list_raw_cases()]
        changed = [cases.get(str(raw.get("id")), raw) if isinstance(raw, dict) else raw for raw in old]
        new: list[JsonValue] = [one for one in changed if one is not None]
        if not new:
            raise GateError("no-cases-left", f"{self.shown_as} would have no case left", "delete the file instead")
        expected = self._with_cases(new)
        text = self.data.decode()
        try:
            if self.path.suffix.lower() == _LINES:
                new_text = _rewrite_lines(text, old, changed)
            elif self.path.suffix.lower() in {".yaml", ".yml"}:
                new_text = rewrite_yaml(text, self.document, expected)
            else:
                new_text = rewrite_json(text, self.document, expected)
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            raise _build_edit_error(self.shown_as, str(error)) from error
        file = self._read_again(new_text)
        if not is_same_value(file.document, expected):
            raise _build_edit_error(self.shown_as, "its layout is not supported")
        return file

    def get_case_text(self, case: EvalCase) -> str:
        """Return the text of a case: its lines in the file, without other content on them."""
        begin, end = self._find_case_span(case)
        return self.data.decode()[begin:end]

    def replace_case_text(self, case: EvalCase, text: str) -> CaseFile:
        """Return the file with another text of a case, unwritten. Raises GateError if it changes more than the case."""
        begin, end = self._find_case_span(case)
        whole = self.data.decode()
        trail = whole[begin:end][len(whole[begin:end].rstrip()) :]  # editors end a file with a line break
        changed = self._read_again(whole[:begin] + text.rstrip() + trail + whole[end:])
        place = self.find_place(case)
        if len(self.list_raw_cases()) != len(changed.list_raw_cases()) or not is_same_value(
            self.drop_case(place), changed.drop_case(place)
        ):
            raise GateError(
                "invalid-eval-file", "the text is not one case any more", "change only what belongs to the case"
            )
        return changed

    def write(self, changed: CaseFile) -> None:
        """Write the changed file in place of this one. Raises GateError if the file has changed meanwhile."""
        if changed.data == self.data:
            return
        if read_bytes(self.path, self.shown_as) != self.data:
            raise GateError(
                "eval-file-changed", f"{self.shown_as} has changed while it was edited", "run the command again"
            )
        write_atomically(self.path, changed.data)

    def list_raw_cases(self) -> Sequence[JsonValue]:
        """List the cases of the document; an AgentV list may also name other files."""
        name = self._find_list_name()
        cases = self.document[name] if isinstance(self.document, dict) and name is not None else self.document
        return cases if isinstance(cases, list) else []

    def drop_case(self, place: int) -> JsonValue:
        """Return the document without the case at this place of its list."""
        return self._with_cases([raw for number, raw in enumerate(self.list_raw_cases()) if number != place])

    def _with_cases(self, cases: Sequence[JsonValue]) -> JsonValue:
        name = self._find_list_name()
        if name is None or not isinstance(self.document, dict):
            return list(cases)
        return {**self.document, name: list(cases)}

    def _find_list_name(self) -> str | None:
        """Return the key of the list of cases; None if the document is that list."""
        if not isinstance(self.document, dict):
            return None
        return (find_list_name(self.document) if self.suite.format == "agentv" else None) or "cases"

    def _find_case_span(self, case: EvalCase) -> tuple[int, int]:
        place, name, text = self.find_place(case), self._find_list_name(), self.data.decode()
        path = () if name is None else (name,)
        try:
            if self.path.suffix.lower() == _LINES:
                return _list_line_spans(text)[place]
            if self.path.suffix.lower() in {".yaml", ".yml"}:
                return YamlLayout(text).find_member_lines(path, place)
            return JsonLayout(text).find_member_lines(path, place)
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            raise _build_edit_error(self.shown_as, str(error)) from error

    def _read_again(self, text: str) -> CaseFile:
        return _parse_case_file(text.encode(), self.path, self.root, strict=self.is_strict)


def read_case_file(path: Path, root: Path) -> CaseFile:
    """Read an eval file to change its cases. Raises GateError with every problem of the file."""
    data = read_bytes(path, format_path(path, root))
    try:
        return _parse_case_file(data, path, root, strict=True)
    except GateError:
        return _parse_case_file(data, path, root, strict=False)


def _parse_case_file(data: bytes, path: Path, root: Path, *, strict: bool) -> CaseFile:
    shown_as = format_path(path, root)
    document: Document = parse_document(find_notation(path), data, path, shown_as)
    dialect = recognize_document(document.value, path, explicit=True)
    if isinstance(dialect, Dialect):
        reading = ReadOptions(strict=strict, target_override=ANY_TARGET)
        suite = dialect.load(document.value, document.positions, EvalSource(shown_as, data, path, root), reading)
        return CaseFile(path, root, data, document.value, suite, strict)
    raise GateError(
        "unknown-format",
        f"{shown_as} is not an eval file",
        "`eval-gate validate` says what is missing",
        problems=[Problem("no format of eval files has this shape", file=shown_as)],
    )


def _list_line_spans(text: str) -> list[tuple[int, int]]:
    spans, begin = list[tuple[int, int]](), 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((begin, begin + len(line.rstrip("\r"))))
        begin += len(line) + 1
    return spans


def _rewrite_lines(text: str, old: Sequence[JsonValue], new: Sequence[JsonValue]) -> str:
    spans = _list_line_spans(text)
    for (begin, end), was, value in reversed(list(zip(spans, old, new, strict=True))):
        if value is None:
            following = text.find("\n", end) + 1
            text = text[:begin] + (text[following:] if following else "")
        else:
            text = text[:begin] + rewrite_json(text[begin:end], was, value) + text[end:]
    return text


def _build_edit_error(name: str, why: str) -> GateError:
    return GateError(
        "eval-file-not-editable",
        f"{name} cannot be changed without changing other parts of it: {' '.join(why.split())[:200]}",
        "change it by hand",
    )
