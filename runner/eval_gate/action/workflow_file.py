"""Workflow files: what starts them, and the steps of their jobs, as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def parse_workflow(data: bytes) -> Any:
    """Parse a workflow file into mappings, lists and text: `on` stays a word. None for a file that is no YAML."""
    import yaml  # 10 ms that most runs need nothing of

    try:
        return yaml.load(data, Loader=yaml.BaseLoader)  # noqa: S506 (it makes nothing else)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError, RecursionError):
        return None


def get_mapping(node: Any, key: str) -> dict[str, Any]:
    """Return the mapping under a key, or an empty one."""
    found = node.get(key) if isinstance(node, dict) else None
    return found if isinstance(found, dict) else {}


def map_triggers(workflow: Any) -> dict[str, Any]:
    """Map the triggers of a workflow to what is written about them."""
    triggers = workflow.get("on") if isinstance(workflow, dict) else None
    if isinstance(triggers, dict):
        return triggers
    words = triggers if isinstance(triggers, list) else [triggers]
    return {word: None for word in words if isinstance(word, str)}


def iter_steps(workflow: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield every step of a workflow with the id of its job and the job."""
    for name, job in get_mapping(workflow, "jobs").items():
        steps = job.get("steps") if isinstance(job, dict) else None
        yield from ((name, job, one) for one in (steps if isinstance(steps, list) else ()) if isinstance(one, dict))
