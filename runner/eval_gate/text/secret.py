"""Secret values as a type that formats as `***`; open one only where it is sent.

Masking (`redaction.py`) is the second line: it finds in texts what comes back from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from eval_gate.text.mask import MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from pydantic_core.core_schema import SerializationInfo

T_co = TypeVar("T_co", covariant=True)


def mask_ranges(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Replace each range of the text with a mask; ranges that overlap share one mask."""
    parts, last_end = [], 0
    for begin, end in sorted(one for one in ranges if one[0] < one[1]):
        if begin >= last_end:
            parts += [text[last_end:begin], MASK]
        last_end = max(last_end, end)
    return "".join((*parts, text[last_end:])) if parts else text


class Secret(Generic[T_co]):
    """A secret text, or JSON with secret texts, that prints and serializes as `***`, and equals its content."""

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def open(self) -> T_co:
        """Return the value itself, for code that sends it or checks it first."""
        return self._value

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other.open() if isinstance(other, Secret) else other))

    def __hash__(self) -> int:
        # a mapping has no hash of its own, and equal ones may be written in different orders
        return hash(self._value if isinstance(self._value, str) else Secret)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        def checked(value: object, check: Callable[[object], T_co]) -> Secret[T_co]:
            return cls(check(value.open() if isinstance(value, Secret) else value))

        def serialize_secret(value: Secret[T_co], info: SerializationInfo) -> object:
            return str(value) if info.mode_is_json() else value

        (shape,) = get_args(source)
        return core_schema.no_info_wrap_validator_function(
            checked,
            handler.generate_schema(shape),
            serialization=core_schema.plain_serializer_function_ser_schema(serialize_secret, info_arg=True),
        )


class SecretAddress(Secret[T_co]):
    """A secret URL: credentials, query and fragment print as `***`, the rest is shown."""

    __slots__ = ()

    def __str__(self) -> str:
        from eval_gate.text.urls import mask_address

        return mask_address(str(self._value))
