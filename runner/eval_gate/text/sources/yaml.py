"""Strict YAML parser with line numbers: no duplicate keys, no alias bombs, JSON values only."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, DocumentStartEvent, NodeEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eval_gate.errors import GateError, Problem
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import DEPTH, FILE_DIGITS, FINDINGS, YAML_VALUES
from eval_gate.text.json_values import iter_leaves
from eval_gate.text.quoting import quote_name
from eval_gate.text.sources.validation_errors import format_field_path

MAX_VALUES: Final = YAML_VALUES
MAX_DEPTH: Final = DEPTH
"""Maximum nesting of lists and mappings. Without it, the recursion of the parser would end the process."""

MAX_KEY: Final = 100
"""Characters of a key that are shown."""
MAX_DIGITS: Final = FILE_DIGITS
"""Digits of a number: more is not a value anybody compares with."""

_POSSIBLE_HUGE_NUMBER: Final = re.compile(rb"\.(?:inf|nan)|e\+[0-9]{2}|[0-9_]{300}", re.IGNORECASE)
"""What has no number beyond all range in it has none of these signs."""
_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
_TOO_MANY: Final = f"more than {MAX_VALUES:,} values"
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_SCALARS: Final = frozenset(_TAG + kind for kind in ("str", "int", "float", "bool", "null"))
_NUMBERS: Final = frozenset({f"{_TAG}int", f"{_TAG}float"})
_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc, valid-type]  # the C loader exists only where libyaml was built in
    """YAML loader without dates: `2026-11-21` stays a string, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


class YamlPositions:
    """Line numbers of the values in the YAML document they were parsed from."""

    def __init__(self, root: Node | None) -> None:
        self._root = root
        self._members: dict[int, dict[str, tuple[int, Node]]] = {}

    def find_line(self, path: Sequence[str | int]) -> int:
        """Find the line (from 1) of the key or element at `path`, or of its nearest existing ancestor."""
        return self._find_node(path)[0]

    def find_unquoted(self, path: Sequence[str | int]) -> str | None:
        """Find the scalar at `path` as it is written; return None if it has quotes or is not a scalar."""
        node = self._find_node(path)[1]
        return str(node.value) if isinstance(node, ScalarNode) and not node.style else None

    def _find_node(self, path: Sequence[str | int]) -> tuple[int, Node | None]:
        """Find the node at `path`, and the line of it or of its nearest existing ancestor."""
        node, line = self._root, 1
        for step in path:
            child = self._find_child(node, step)
            if child is None:
                return line, None
            line, node = child
        return line, node

    def _find_child(self, node: Node | None, step: str | int) -> tuple[int, Node] | None:
        """Find the line and the node at `step` below `node`; return None if there is none."""
        if isinstance(node, MappingNode):
            if id(node) not in self._members:
                self._members[id(node)] = {str(key.value): (key.start_mark.line + 1, one) for key, one in node.value}
            return self._members[id(node)].get(str(step))
        if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
            value = node.value[step]
            return value.start_mark.line + 1, value
        return None


def parse_yaml(data: bytes, file: str, *, any_number: bool = False) -> tuple[JsonValue, YamlPositions]:
    """Parse the YAML document in `data`, and return it with the lines of its values.

    An empty document is None. With `any_number` it may hold numbers that JSON does not have, for callers that
    read its scalars again.

    Raises GateError `invalid-yaml`, naming file and line.
    """
    loader = None
    try:
        _raise_problems(_find_outline_problems(data, file), file)
        loader = _Loader(data)
        node = loader.get_single_node()
        _raise_problems(_NodeChecker(file).find_problems(node), file)
        value: JsonValue = None if node is None else loader.construct_document(node)
        if not any_number and _POSSIBLE_HUGE_NUMBER.search(data):
            positions = YamlPositions(node)
            numbers = ((path, leaf) for path, leaf in iter_leaves(value) if isinstance(leaf, float))
            paths = islice((path for path, number in numbers if not math.isfinite(number)), FINDINGS)
            _raise_problems([_build_number_problem(path, positions, file) for path in paths], file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = Problem(str(error.problem or error.context), file=file, line=mark.line + 1 if mark else None)
        raise _build_error(file, problem) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _build_error(file, Problem(f"not YAML text: {' '.join(str(error).split())}", file=file)) from error
    except (ValueError, LookupError) as error:  # a value that is not what its tag says
        raise _build_error(file, Problem(f"invalid tag: {error}", file=file)) from error
    except RecursionError as error:
        raise _build_error(file, Problem(_TOO_DEEP, file=file)) from error
    finally:
        if loader is not None:
            loader.dispose()
    return value, YamlPositions(node)


def _build_number_problem(path: tuple[str | int, ...], positions: YamlPositions, file: str) -> Problem:
    message = "a number that JSON does not have, such as .inf, .nan or 1.0e+400"
    return Problem(message, file=file, line=positions.find_line(path), field=format_field_path(path) or None)


def _build_error(file: str, *problems: Problem) -> GateError:
    return GateError("invalid-yaml", f"{file} cannot be read", "correct the file", problems=problems)


def _raise_problems(problems: Sequence[Problem], file: str) -> None:
    if problems:
        raise _build_error(file, *problems)


def _find_outline_problems(data: bytes, file: str) -> list[Problem]:
    """Find why a document must not be composed, without recursion: too deep, too large, or several documents."""
    depth = nodes = documents = 0
    for event in yaml.parse(data, Loader=_Loader):
        if isinstance(event, NodeEvent):
            nodes += 1
            depth += isinstance(event, CollectionStartEvent)
        else:
            depth -= isinstance(event, CollectionEndEvent)
            documents += isinstance(event, DocumentStartEvent)
        if depth > MAX_DEPTH or documents > 1 or nodes > 2 * MAX_VALUES:
            message = _TOO_DEEP if depth > MAX_DEPTH else _TOO_MANY if documents == 1 else "more than one document"
            mark = event.start_mark
            return [Problem(message, file=file, line=mark.line + 1 if mark else None)]
    return []


class _NodeChecker:
    """Check of the nodes for duplicate keys, keys that are not strings, tags, and alias bombs."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[Problem] = []
        self._extents: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()

    def find_problems(self, root: Node | None) -> list[Problem]:
        """Find everything that is wrong below `root`."""
        values, depth = (0, 0) if root is None else self._measure_node(root)
        for message, holds in ((_TOO_MANY, values > MAX_VALUES), (_TOO_DEEP, depth > MAX_DEPTH)):
            if holds and root is not None:
                self._add_problem(f"{message} with aliases expanded", root)
        return self._problems

    def _add_problem(self, message: str, node: Node) -> None:
        self._problems.append(Problem(message, file=self._file, line=node.start_mark.line + 1))

    def _measure_node(self, node: Node) -> tuple[int, int]:
        cached_extent = self._extents.get(id(node))
        if cached_extent is not None:
            return cached_extent
        if id(node) in self._open:
            self._add_problem("an alias that contains itself", node)
            return 0, 0
        self._open.add(id(node))
        self._check_kind(node)
        members: list[tuple[int, int]] = []
        if isinstance(node, MappingNode):
            self._check_keys(node)
            members = [self._measure_node(value) for _, value in node.value]
        elif isinstance(node, SequenceNode):
            members = [self._measure_node(value) for value in node.value]
        self._open.discard(id(node))
        extent = 1 + sum(values for values, _ in members), 1 + max((depth for _, depth in members), default=0)
        self._extents[id(node)] = extent
        return extent

    def _check_kind(self, node: Node) -> None:
        """Check that a node is of a kind that JSON has."""
        kind = "map" if isinstance(node, MappingNode) else "seq"
        tags = _SCALARS if isinstance(node, ScalarNode) else {_TAG + kind}
        if node.tag not in tags:
            self._add_problem(
                f"a value of type {quote_name(node.tag.removeprefix(_TAG))}, which JSON does not have", node
            )
        elif isinstance(node, ScalarNode) and node.tag in _NUMBERS and len(node.value) > MAX_DIGITS:
            self._add_problem(f"a number of {len(node.value):,} digits", node)

    def _check_merge(self, value: Node) -> None:
        """Check that `<<` merges a mapping or a list of mappings."""
        parts = value.value if isinstance(value, SequenceNode) else [value]
        if not all(isinstance(one, MappingNode) for one in parts):
            self._add_problem("`<<` expects a mapping or a list of mappings", value)

    def _check_keys(self, node: MappingNode) -> None:
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, ScalarNode) and key.tag == _MERGE:
                self._check_merge(value)
            elif not isinstance(key, ScalarNode) or key.tag != f"{_TAG}str":
                self._add_problem("a key that is not text: put it in quotes", key)
            elif key.value in lines:
                self._add_problem(f'the key "{key.value[:MAX_KEY]}" is already in line {lines[key.value]}', key)
            else:
                lines[key.value] = line
