"""A value that nobody may see, as a type: whatever shows it shows `***`. It is opened where it is sent.

Masking (`redact.py`) is the second line: it finds in texts what comes back from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

MASK: Final = "***"
T_co = TypeVar("T_co", covariant=True)


class Secret(Generic[T_co]):
    """Holds a text, or a JSON value with texts in it. As text it is `***`; in JSON that pydantic writes, too."""

    __slots__ = ("_value",)
    _shape: ClassVar[type | None] = None
    """What it holds, where the class says so itself."""

    def __init__(self, value: T_co) -> None:
        self._value = value

    def open(self) -> T_co:
        """The value itself: for what sends it, and for what checks it before."""
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
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value if isinstance(self._value, str) else repr(self._value)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        shape = cls._shape or next(iter(get_args(source)), str)
        # what is one already stays so; everything else has to have the shape
        checked = core_schema.no_info_after_validator_function(cls, handler.generate_schema(shape))
        return core_schema.json_or_python_schema(
            checked,
            core_schema.union_schema([core_schema.is_instance_schema(cls), checked], mode="left_to_right"),
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )


class SecretAddress(Secret[str]):
    """An address: its user part, query and fragment are `***`, the rest is shown."""

    __slots__ = ()
    _shape = str

    def __str__(self) -> str:
        from eval_gate.text.urls import hide_in_addresses

        return hide_in_addresses(self._value)
