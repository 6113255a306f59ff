"""Settings that a result depends on: all settings except those that cannot change a result.

A setting is included by default. Each excluded setting states a reason (`no_effect` in `config/settings.py`, `NoEffect`
in the settings of targets).
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from eval_gate.model.base import Record


class SettingRole(StrEnum):
    """Role of a target setting that does not describe how to send requests and read responses."""

    LOCATION = "location"
    """Location of the agent: its address or command."""
    AGENT = "agent"
    """The agent itself, such as its prompt: the subject of the evaluation."""


class SettingValue(Record, kw_only=True):
    """One setting with a value other than its default, as text without secrets.

    A value from a variable is stored as the name of the variable and the text around it.
    """

    name: str
    """Name as users write it, in camelCase."""
    value: str
    default: str | None = None
    """Value that applies if the other result does not have this setting; None for no value."""
    role: SettingRole | None = None


class TargetIdentity(Record, kw_only=True):
    """A target or a judge. `identity` has no credentials and no query string."""

    name: str
    provider: str
    identity: str
    model: str | None = None
    setup: tuple[SettingValue, ...] = ()
    """Settings that differ from their defaults and can change a result."""
    fingerprint: str | None = None
    """Setup fingerprint without the name, 16 hex digits. None if no settings describe the target."""
    file: str | None = None
    """Targets file that describes it; None if it was given in another way."""


class SettingChange(NamedTuple):
    """One setting with a changed value. `baseline` or `current` is None if it is not set."""

    name: str
    baseline: str | None
    current: str | None
    role: SettingRole | None


def compare_settings(baseline: Iterable[SettingValue], current: Iterable[SettingValue]) -> Iterator[SettingChange]:
    """Yield the settings whose value differs between `baseline` and `current`, sorted by name.

    If only one side has a setting, its default counts for the other side.
    """
    old_settings, new_settings = ({one.name: one for one in settings} for settings in (baseline, current))
    for name in sorted(old_settings.keys() | new_settings.keys()):
        was, is_now = old_settings.get(name), new_settings.get(name)
        setting = is_now or was
        assert setting is not None
        old = was.value if was else setting.default
        new = is_now.value if is_now else setting.default
        if old != new:
            yield SettingChange(name, old, new, setting.role)


def compare_targets(
    baseline: Iterable[TargetIdentity], current: Iterable[TargetIdentity]
) -> Iterator[tuple[str, SettingChange]]:
    """Yield the settings that differ between targets, or LLM judges, of the same name.

    Each item is the name and the change. A target that has no fingerprint on one of the sides is left out.
    """
    by_name = {one.name: one for one in baseline}
    for one in current:
        old = by_name.get(one.name)
        if old is not None and None not in {old.fingerprint, one.fingerprint}:
            yield from ((one.name, change) for change in compare_settings(old.setup, one.setup))


def format_setting_change(change: SettingChange) -> str:
    """`responsePath response → extra`."""
    return f"{change.name} {change.baseline or 'not set'} → {change.current or 'not set'}"
