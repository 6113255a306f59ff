"""YAML read strictly, with the line of every value: no duplicate keys, no endless aliases, JSON values only."""

from __future__ import annotations

from collections.abc import Sequence

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from runner.errors import GateError, Problem
from runner.model.base import JsonValue

MAX_VALUES = 200_000
"""Values of one document, aliases written out: more is an alias bomb or not a file for a person."""

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc, valid-type]  # the C loader exists only where libyaml was built in
    """YAML without dates: `2026-11-21` stays the text it is, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


class YamlPositions:
    """Where values stand in the document they were parsed from."""

    def __init__(self, root: Node | None) -> None:
        self._root = root

    def line(self, path: Sequence[str | int]) -> int:
        """The line (from 1) of the key or element at `path`, or of its nearest ancestor that exists."""
        node, line = self._root, 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line


def _child(node: Node | None, step: str | int) -> tuple[int, Node] | None:
    """The line and node below `node` at `step`."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        value = node.value[step]
        return value.start_mark.line + 1, value
    return None


def parse_yaml(data: bytes, file: str) -> tuple[JsonValue, YamlPositions]:
    """The document in `data` and the lines of its values; an empty document is None.

    Raises GateError `invalid-yaml` naming file and line.
    """
    loader = None
    try:
        loader = _Loader(data)
        node = loader.get_single_node()
        _refuse(_Check(file).problems(node), file)
        value: JsonValue = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        _refuse([Problem(str(error.problem or error.context), file=file, line=line)], file)
        raise AssertionError from error  # _refuse has raised
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _invalid(file, [Problem(f"not YAML text: {error}", file=file)]) from error
    except RecursionError as error:
        raise _invalid(file, [Problem("nested too deeply", file=file)]) from error
    finally:
        if loader is not None:
            loader.dispose()
    return value, YamlPositions(node)


def _invalid(file: str, problems: Sequence[Problem]) -> GateError:
    return GateError("invalid-yaml", f"{file} cannot be read", "correct the file", problems=problems)


def _refuse(problems: Sequence[Problem], file: str) -> None:
    if problems:
        raise _invalid(file, problems)


class _Check:
    """One walk over the nodes: duplicate keys, keys that are no text, tags with code, aliases that explode."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[Problem] = []
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def problems(self, root: Node | None) -> list[Problem]:
        """Everything that is wrong below `root`."""
        if root is not None and self._size(root) > MAX_VALUES:
            self._report(f"more than {MAX_VALUES} values once aliases are written out", root)
        return self._problems

    def _report(self, message: str, node: Node) -> None:
        self._problems.append(Problem(message, file=self._file, line=node.start_mark.line + 1))

    def _size(self, node: Node) -> int:
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            self._report("an alias that contains itself", node)
            return 0
        self._open.add(id(node))
        size = 1
        if isinstance(node, MappingNode):
            self._keys(node)
            size += sum(self._size(value) for _, value in node.value)
        elif isinstance(node, SequenceNode):
            size += sum(self._size(value) for value in node.value)
        self._open.discard(id(node))
        self._sizes[id(node)] = size
        return size

    def _keys(self, node: MappingNode) -> None:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                self._report("a key that is not text: put it in quotes", key)
            elif key.value in seen:
                self._report(f'the key "{key.value}" stands already in line {seen[key.value]}', key)
            else:
                seen[key.value] = line
