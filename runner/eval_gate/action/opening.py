"""Learns what the plan needs to know, and makes the plan."""

from __future__ import annotations

from eval_gate.action.inputs import Settings
from eval_gate.action.plan import Known, make_plan, pull_number
from eval_gate.action.step import Step
from eval_gate.errors import GateError
from eval_gate.github.checkout import checked_out
from eval_gate.github.client import Client
from eval_gate.github.commits import PullRequest, pull_request, repository
from eval_gate.github.environment import WorkflowEnvironment
from eval_gate.github.event import Event, read_event
from eval_gate.github.failure import GitHubError, if_there, unavailable


def open_step(environment: WorkflowEnvironment, settings: Settings) -> Step:
    """The step, planned. Raises GateError for what makes planning impossible."""
    if not settings.token:
        raise GateError(
            "no-token",
            "`github-token` is empty",
            "leave the input out, its default is the job's own token; on the command line set GITHUB_TOKEN",
        )
    event = read_event(environment.event_name, environment.event_path)
    client = Client(environment.api_url, settings.token, environment.repository)
    try:
        known = Known(
            default_branch=_default_branch(client, event),
            pull=_dispatched_pull(client, event),
            checkout=checked_out(environment.workspace),
        )
    except GitHubError as error:
        client.close()
        raise unavailable(str(error)) from error
    return Step(environment, settings, make_plan(environment, event, settings, known), client)


def _default_branch(client: Client, event: Event) -> str:
    """From the event, which a schedule has not in it."""
    told = event.repository.default_branch if event.repository else None
    return told or repository(client).default_branch


def _dispatched_pull(client: Client, event: Event) -> PullRequest | None:
    number = pull_number(event)
    return None if number is None else if_there(lambda: pull_request(client, number))
