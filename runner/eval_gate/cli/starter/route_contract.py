"""Reads what a FastAPI route wants from the source of its file: field of the prompt, headers, field of the response.

The source is parsed and never executed. What it does not say for certain stays unknown.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Final

from eval_gate.struct import FrozenStruct

PROMPT_FIELD: Final = "message"
RESPONSE_FIELD: Final = "response"
"""The fields of our own protocol."""
_PROMPT_NAMES: Final = (PROMPT_FIELD, "question", "query", "prompt", "text", "input")
_RESPONSE_NAMES: Final = (RESPONSE_FIELD, "answer", "reply", "text", "message", "output", "content", "result")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_KEY_WORD: Final = re.compile(r"(?i)key|token|auth|secret")
_AUTHORIZATION: Final = "Authorization"
_BEARERS: Final = frozenset({"HTTPBearer", "OAuth2PasswordBearer"})
_DEPENDENCIES: Final = frozenset({"Depends", "Security"})
_MAX_HEADERS: Final = 5
_MAX_PARAMETERS: Final = 50
_MAX_BASES: Final = 20
_MAX_FIELDS: Final = 200


class RouteContract(FrozenStruct):
    """Request and response of a route. A field is None, or missing in a tuple, if it is unknown."""

    prompt_field: str | None = None
    other_fields: tuple[str, ...] = ()
    """Further fields that every request needs."""
    headers: tuple[str, ...] = ()
    response_path: str | None = None

    @property
    def is_own_protocol(self) -> bool:
        """Whether nothing that is known differs from our own protocol."""
        usual = (self.prompt_field or PROMPT_FIELD, self.response_path or RESPONSE_FIELD)
        return usual == (PROMPT_FIELD, RESPONSE_FIELD) and not self.headers and not self.other_fields


def read_route_contract(text: str, route: str) -> RouteContract | None:
    """Read the contract of the first POST route with this path.

    Return None if the source cannot be parsed or has no such route.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as invalid escapes, which are not ours
            module = ast.parse(text)
            return _SourceFile(module).read_contract(route)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Field(FrozenStruct):
    """Field of a model as it stands in JSON."""

    name: str
    annotation: ast.expr
    required: bool


class _Parameter(FrozenStruct):
    """Parameter of a function. `markers` are the calls that say where its value comes from."""

    name: str
    annotation: ast.expr | None
    markers: tuple[ast.Call, ...]
    required: bool


class _SourceFile:
    """Classes, functions and variables at the top level of a file."""

    def __init__(self, module: ast.Module) -> None:
        self._functions = {node.name: node for node in module.body if isinstance(node, _Function)}
        self._classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self._variables: dict[str, ast.expr] = {}
        for node in module.body:
            if isinstance(node, ast.Assign):
                self._variables |= {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self._variables[node.target.id] = node.value
        self._fields: dict[tuple[str, str], list[_Field] | None] = {}
        self._routes = [node for node in ast.walk(module) if isinstance(node, _Function)]

    def read_contract(self, route: str) -> RouteContract | None:
        for function in self._routes:
            for call in function.decorator_list:
                if isinstance(call, ast.Call) and _is_post(call, route):
                    prompt, others = self._find_prompt_field(function)
                    headers = {name.lower(): name for name in self._iter_headers(function, call)}
                    response = self._find_response_path(function, call)
                    return RouteContract(prompt, others, tuple(headers.values())[:_MAX_HEADERS], response)
        return None

    def _find_prompt_field(self, function: _Function) -> tuple[str | None, tuple[str, ...]]:
        """Find the field of the prompt in the request model, and the other fields that it requires."""
        parameters = list(self._iter_parameters(function))
        models = [one for one in parameters if self._find_model(one.annotation) is not None]
        bodies = [
            call for one in parameters for call in one.markers if _get_name(call.func) in {"Body", "Form", "File"}
        ]
        # of several, each is nested below its own name
        if len(models) != 1 or any(call not in models[0].markers or _get_keyword(call, "embed") for call in bodies):
            return None, ()
        if any(_get_name(call.func) in _DEPENDENCIES | {"Query", "Form"} for call in models[0].markers):
            return None, ()
        fields = self._list_fields(self._find_model(models[0].annotation), "validation_alias")
        texts = [one for one in fields or () if self._is_text(one.annotation)]
        named = [one for one in texts if one.name in _PROMPT_NAMES]
        needed = [one for one in texts if one.required]
        choices = (named, [one for one in named if one.required], needed if not named else [])
        prompt = next((one.name for (one,) in (found for found in choices if len(found) == 1)), None)
        required = [one.name for one in fields or () if one.required and one.name != prompt]
        if prompt is None or not all(map(_PLAIN_NAME.fullmatch, (prompt, *required))):
            return None, ()
        return prompt, tuple(required)

    def _find_response_path(self, function: _Function, decorator: ast.Call) -> str | None:
        annotation = _get_keyword(decorator, "response_model") or function.returns
        return self._find_text_path(self._find_model(annotation), nested=True)

    def _find_text_path(self, model: ast.ClassDef | None, *, nested: bool) -> str | None:
        """Find the path to the text of a response, at most one level deep if `nested`."""
        fields = self._list_fields(model, "serialization_alias") or ()
        texts = [one.name for one in fields if self._is_text(one.annotation)]
        named = [name for name in texts if name in _RESPONSE_NAMES]
        if RESPONSE_FIELD in named:
            return RESPONSE_FIELD
        for found in (named, texts):
            if len(found) == 1 and _PLAIN_NAME.fullmatch(found[0]):
                return found[0]
        if texts or not nested:
            return None
        below = [(one.name, self._find_model(one.annotation)) for one in fields]
        paths = [
            f"{name}.{path}"
            for name, inner in below
            if _PLAIN_NAME.fullmatch(name) and (path := self._find_text_path(inner, nested=False))
        ]
        return paths[0] if len(paths) == 1 else None

    def _iter_headers(self, function: _Function, decorator: ast.Call) -> Iterator[str]:
        """Yield the headers that the route needs, also those of dependencies of its decorator and its app."""
        yield from self._iter_parameter_headers(function, through_function=True)
        owner = decorator.func.value if isinstance(decorator.func, ast.Attribute) else None
        app = self._variables.get(owner.id) if isinstance(owner, ast.Name) else None
        for call in (decorator, app):
            listed = _get_keyword(call, "dependencies") if isinstance(call, ast.Call) else None
            for one in listed.elts if isinstance(listed, ast.List | ast.Tuple) else ():
                if isinstance(one, ast.Call):
                    yield from self._iter_dependency_headers(one, through_function=True)

    def _iter_parameter_headers(self, function: _Function, *, through_function: bool) -> Iterator[str]:
        for one in self._iter_parameters(function):
            for call in one.markers:
                name = _find_header(one, call)
                if name is not None:
                    yield name
                yield from self._iter_dependency_headers(call, through_function=through_function)

    def _iter_dependency_headers(self, call: ast.Call, *, through_function: bool) -> Iterator[str]:
        """Yield the headers that `Depends(...)` or `Security(...)` reads, itself or through one function."""
        if _get_name(call.func) not in _DEPENDENCIES:
            return
        needed = call.args[0] if call.args else _get_keyword(call, "dependency")
        if isinstance(needed, ast.Name) and needed.id in self._functions:
            if through_function:
                yield from self._iter_parameter_headers(self._functions[needed.id], through_function=False)
            return
        scheme = self._variables.get(needed.id) if isinstance(needed, ast.Name) else needed
        if not isinstance(scheme, ast.Call):
            return
        if _get_name(scheme.func) in _BEARERS:
            yield _AUTHORIZATION
        elif _get_name(scheme.func) == "APIKeyHeader":
            name = _get_text(_get_keyword(scheme, "name"))
            if name is not None and _PLAIN_NAME.fullmatch(name):
                yield name

    def _iter_parameters(self, function: _Function) -> Iterator[_Parameter]:
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
        every = zip([*positional, *arguments.kwonlyargs], [*defaults, *arguments.kw_defaults], strict=True)
        for one, default in islice(every, _MAX_PARAMETERS):
            annotation, markers = self._split_annotation(one.annotation)
            if isinstance(default, ast.Call):
                markers = (*markers, default)
                required = _is_required_call(default)
            else:
                required = default is None
            yield _Parameter(one.arg, annotation, markers, required)

    def _split_annotation(self, annotation: ast.expr | None) -> tuple[ast.expr | None, tuple[ast.Call, ...]]:
        """Split `Annotated[type, marker(...)]`, also behind a variable, into the type and its markers."""
        if isinstance(annotation, ast.Name) and annotation.id in self._variables:
            annotation = self._variables[annotation.id]
        if (
            isinstance(annotation, ast.Subscript)
            and _get_name(annotation.value) == "Annotated"
            and isinstance(annotation.slice, ast.Tuple)
            and annotation.slice.elts
        ):
            first, *rest = annotation.slice.elts
            return first, tuple(one for one in rest if isinstance(one, ast.Call))
        return annotation, ()

    def _find_model(self, annotation: ast.expr | None) -> ast.ClassDef | None:
        """Find the pydantic model of an annotation in this file."""
        name = _get_name(self._split_annotation(annotation)[0])
        return self._classes[name] if name in self._classes and self._list_bases(name) else None

    def _list_bases(self, name: str) -> list[ast.ClassDef]:
        """List a class and its bases in this file, bases first. Return an empty list if it is no pydantic model."""
        found: dict[str, ast.ClassDef] = {}
        waiting, is_model = [name], False
        while waiting and len(found) < _MAX_BASES:
            one = waiting.pop()
            if one in found or one not in self._classes:
                is_model |= one == "BaseModel"
                continue
            found[one] = self._classes[one]
            waiting += [base for node in found[one].bases if (base := _get_name(node)) is not None]
        return [*reversed(found.values())] if is_model else []

    def _list_fields(self, model: ast.ClassDef | None, alias_name: str) -> list[_Field] | None:
        """List the fields of a model, whose names in JSON this alias changes.

        Return None if these names cannot be told, or if there are too many.
        """
        if model is None:
            return []
        key = (model.name, alias_name)
        if key not in self._fields:
            self._fields[key] = self._read_fields(model, alias_name)
        return self._fields[key]

    def _read_fields(self, model: ast.ClassDef, alias_name: str) -> list[_Field] | None:
        fields: dict[str, _Field] = {}
        for node in self._list_bases(model.name):
            if any(isinstance(one, ast.keyword) and one.arg == "alias_generator" for one in ast.walk(node)):
                return None
            for line in node.body:
                if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
                    continue
                if line.target.id.startswith("_") or line.target.id == "model_config":
                    continue
                one = self._read_field(line, line.target.id, alias_name)
                if one is None:
                    return None
                fields[line.target.id] = one
        return [*fields.values()] if len(fields) <= _MAX_FIELDS else None

    def _read_field(self, line: ast.AnnAssign, name: str, alias_name: str) -> _Field | None:
        annotation, markers = self._split_annotation(line.annotation)
        calls = (*markers, line.value) if isinstance(line.value, ast.Call) else markers
        made = [one for one in calls if _get_name(one.func) == "Field"]
        aliases = [_get_keyword(one, key) for one in made for key in (alias_name, "alias")]
        alias = next((one for one in aliases if one is not None), None)
        shown = name if alias is None else _get_text(alias)
        if shown is None or annotation is None:
            return None
        if isinstance(line.value, ast.Call):
            required = _get_name(line.value.func) == "Field" and _is_required_call(line.value)
        else:
            required = line.value is None or _is_ellipsis(line.value)
        return _Field(shown, annotation, required)

    def _is_text(self, annotation: ast.expr) -> bool:
        """Whether a field has text: `str`, `str | None` or `Optional[str]`."""
        annotation = self._split_annotation(annotation)[0] or annotation
        if isinstance(annotation, ast.BinOp):
            parts = [annotation.left, annotation.right]
            return any(map(_is_str, parts)) and any(_is_none(part) for part in parts)
        if isinstance(annotation, ast.Subscript) and _get_name(annotation.value) == "Optional":
            return _is_str(annotation.slice)
        return _is_str(annotation)


def _is_post(call: ast.Call, route: str) -> bool:
    path = call.args[0] if call.args else _get_keyword(call, "path")
    return isinstance(call.func, ast.Attribute) and call.func.attr == "post" and _get_text(path) == route


def _find_header(parameter: _Parameter, call: ast.Call) -> str | None:
    """Find the header of a parameter that `Header(...)` fills, if it is required or has the name of a key."""
    if _get_name(call.func) != "Header":
        return None
    alias = _get_keyword(call, "alias")
    keeps = _get_keyword(call, "convert_underscores")
    name = _get_text(alias) if alias is not None else parameter.name
    if alias is None and not (isinstance(keeps, ast.Constant) and keeps.value is False):
        name = parameter.name.replace("_", "-").title()
    if name is None or not _PLAIN_NAME.fullmatch(name):
        return None
    is_needed = parameter.required and _is_required_call(call) and _is_str(parameter.annotation)
    return name if is_needed or _KEY_WORD.search(name) else None


def _is_required_call(call: ast.Call) -> bool:
    """Whether `Field(...)` or `Header(...)` gives no default."""
    if any(one.arg in {"default", "default_factory"} and not _is_ellipsis(one.value) for one in call.keywords):
        return False
    return not call.args or _is_ellipsis(call.args[0])


def _get_keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _get_name(node: ast.expr | None) -> str | None:
    """Get the last part of a name such as `pydantic.BaseModel`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _get_text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_str(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name) and node.id == "str"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
