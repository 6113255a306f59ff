"""`FakeGitHub`: the three hosts of GitHub that the gate speaks to, around one state."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.github.faults import Faults
from tests.support.github.graphql import GraphQL
from tests.support.github.loopback import Door, Exchange, LoopbackServer
from tests.support.github.records import WorkflowRun
from tests.support.github.rest import Rest
from tests.support.github.results_service import ResultsService, runtime_token
from tests.support.github.state import State
from tests.support.github.storage import Storage
from tests.support.github.views import Views
from tests.support.github.web import Web

LOOPBACK = "127.0.0.1"
DEPENDABOT = "dependabot[bot]"

ALL_PERMISSIONS = {"contents:read", "actions:read", "pull-requests:write", "checks:write", "statuses:write"}


class FakeGitHub:
    """GitHub over loopback: the API (`base`), the artifact service (`results_url`) and the blob host behind both.

    A test fills `state`, takes rights away by `read_only` and `permissions`, plans failures by `faults.add`, and looks
    at `state`, `log` and `violations` afterwards.
    """

    def __init__(self, address: str = LOOPBACK) -> None:
        self.state = State()
        self.token = "ghs_fake_token"
        self.read_only = False
        self.declares = True  # whether the workflow has `permissions:`
        self.permissions = set(ALL_PERMISSIONS)
        self.rate_limit = 1000  # requests an hour
        self.runtime_token = runtime_token()
        self.current_run_id = 9001
        self.faults = Faults()
        self.log: list[Exchange] = []
        self._noting = threading.Lock()
        self.storage, self.results, self.graphql = Storage(self), ResultsService(self), GraphQL(self)
        self.web = Web(self)
        self.rest = Rest(self)
        self._servers = servers = [
            LoopbackServer(service, self.faults, self.state.lock, self._note, address)
            for service in (self.rest, self.storage, self.results)
        ]
        api, blob, results = (server.server_port for server in servers)
        self._door = Door(*servers)
        self.base = f"http://{address}:{api}"
        self.results_url = f"http://{address}:{results}/"
        # another name of the same address: clients tell hosts apart by name
        self.storage.base = f"http://{'localhost' if address == LOOPBACK else address}:{blob}"
        self.views = Views(self.state, self.base)

    def start(self) -> None:
        self._door.open()

    @property
    def open_connections(self) -> int:
        """How many clients are connected now."""
        return sum(server.open_connections for server in self._servers)

    def close(self) -> None:
        self._door.close()

    def environment(self, **more: str) -> dict[str, str]:
        """The variables by which a step finds this GitHub."""
        return {
            "GITHUB_API_URL": self.base,
            "GITHUB_GRAPHQL_URL": f"{self.base}/graphql",
            "GITHUB_SERVER_URL": self.base,
            "GITHUB_REPOSITORY": self.state.full_name,
            "GITHUB_REPOSITORY_ID": str(self.state.id),
            "GITHUB_RUN_ID": str(self.current_run_id),
            "ACTIONS_RUNTIME_TOKEN": self.runtime_token,
            "ACTIONS_RESULTS_URL": self.results_url,
        } | more

    @property
    def current_run(self) -> WorkflowRun:
        """The run whose step uploads; it is made when it is first needed."""
        known = self.state.runs.get(self.current_run_id)
        return known or self.state.add_run(self.current_run_id, status="in_progress")

    def may(self, *wanted: str) -> bool:
        """Whether the token has one of these permissions. `write` implies `read`; a read-only token never writes.

        `public` is what anybody may who can read the repository, and that is everybody unless it is private.
        """
        held = self.permissions | {each.replace(":write", ":read") for each in self.permissions}
        held |= set() if self.state.private else {"public"}
        writes = not (self.read_only or self._reads_only())
        return any(each in held and (writes or not each.endswith(":write")) for each in wanted)

    def _reads_only(self) -> bool:
        """Whether GitHub gives the current run a token that cannot write, whatever its workflow asks for.

        To a fork's pull request always; to Dependabot's only where the workflow has no `permissions:`.
        """
        run = self.state.runs.get(self.current_run_id)
        if run is None or not run.event.startswith("pull_request") or run.event == "pull_request_target":
            return False
        return run.head_repository_id != run.repository_id or (run.actor == DEPENDABOT and not self.declares)

    @property
    def violations(self) -> list[str]:
        """Everything that did not fit GitHub's description or rules, in order."""
        with self._noting:
            return [f"{each.method} {each.path}: {what}" for each in self.log for what in each.violations]

    def requests(self, method: str, path_regex: str = "") -> list[Exchange]:
        """The exchanges so far with this method ("*" for any) and a path, query included, that the pattern fits."""
        with self._noting:
            log = list(self.log)
        return [each for each in log if method in {"*", each.method} and re.search(path_regex, each.path)]

    def _note(self, exchange: Exchange) -> None:
        with self._noting:
            self.log.append(exchange)


@contextmanager
def fake_github(address: str = LOOPBACK) -> Iterator[FakeGitHub]:
    """A GitHub of its own, gone afterwards. For a client in a container: `address` is one of ours that it can reach."""
    github = FakeGitHub(address)
    github.start()
    try:
        yield github
    finally:
        github.close()
