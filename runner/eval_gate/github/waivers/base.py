"""Which entries of the file of accepted failures a pull request brings itself: those that its base does not have."""

from __future__ import annotations

from datetime import date

from eval_gate.errors import GateError
from eval_gate.gate.waivers.file import KnownWaivers, marked_new, parse_waivers
from eval_gate.github.client import Client
from eval_gate.github.commits import file_at
from eval_gate.github.failure import GitHubError
from eval_gate.struct import replace


def compare_with_base(client: Client, own: KnownWaivers, path: str, branch: str) -> KnownWaivers:
    """The waivers of the file at `path`, marked by what it says on `branch`. Asks nothing for none.

    Where GitHub does not answer, none is marked, and on a fork's pull request none counts. A file that is not valid on
    the base branch has no entries.
    """
    if not own.waivers:
        return own
    try:
        data = file_at(client, path, branch)
    except GitHubError as error:
        return replace(own, troubles=(f"which entries of {path} are new could not be told: {error}",))
    try:
        return replace(own, waivers=marked_new(own.waivers, parse_waivers(data or b"", own.today, shown_as=path)))
    except GateError as error:
        said = f"every entry of {path} counts as new, because on the base branch {error.message}"
        return replace(own, waivers=marked_new(own.waivers, ()), troubles=(said,))


def read_base(client: Client, path: str, branch: str, today: date) -> KnownWaivers:
    """The waivers of the file at `path` as it is on `branch`, for whoever has no files of the pull request at hand.

    Where it cannot be had or is not valid, nothing in it counts.
    """
    try:
        data = file_at(client, path, branch)
        waivers = parse_waivers(data or b"", today, shown_as=path)
    except (GitHubError, GateError) as error:
        return KnownWaivers(today, troubles=(f"nothing in {path} counts: {error}",))
    return KnownWaivers(today, marked_new(waivers, waivers))
