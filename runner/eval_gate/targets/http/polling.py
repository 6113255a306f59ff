"""Poll an asynchronous HTTP agent for the result of its job."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from eval_gate.targets.base import RetryPolicy, TargetError, TargetFault
from eval_gate.targets.http.connection import (
    ACCEPTED,
    Connection,
    ConnectionLostError,
    HttpRequest,
    ResponseHead,
)
from eval_gate.targets.http.placeholders import Placeholder, fill_address, fill_template
from eval_gate.targets.http.request_builder import PlaceholderValues, RequestBuilder
from eval_gate.targets.http.settings import HttpSettings, Method, Polling
from eval_gate.targets.response.field_paths import MissingValue
from eval_gate.targets.response.reader import find_failure
from eval_gate.text.retry_after import parse_retry_after
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_excerpt

_LOCATION_HEADERS: Final = ("location", "operation-location", "content-location")
_MAX_ID: Final = 1_000

HeadAndBody = tuple[ResponseHead, bytes]


class Poller:
    """Polls the jobs of one target until they are done."""

    def __init__(
        self, settings: HttpSettings, polling: Polling, builder: RequestBuilder, connection: Connection
    ) -> None:
        self._polling = polling
        self._url = None if polling.url is None else polling.url.open()
        self._template = polling.request_template.open()
        self._builder = builder
        self._connection = connection
        self._id, self._at = polling.id_path, polling.url_path
        self._failures = settings.failure

    async def wait_for_response(
        self, response: HeadAndBody, values: PlaceholderValues, policy: RetryPolicy
    ) -> HeadAndBody:
        """Wait for the final response of a job. Raises TargetError, never one that starts the job again."""
        limit_s = self._polling.timeout_seconds
        try:
            async with asyncio.timeout(limit_s):
                return await self._poll_until_done(response, values, policy)
        except TimeoutError as error:
            message = f"agent error: its job did not finish within {limit_s:g} s"
            raise TargetError(message, fault=TargetFault.LATE) from error

    async def _poll_until_done(
        self, response: HeadAndBody, values: PlaceholderValues, policy: RetryPolicy
    ) -> HeadAndBody:
        if not self._is_running(response):
            return response
        request, broken = self._build_request(response, values), 0
        while True:
            retry_after_s = parse_retry_after(response[0].get_header("retry-after")) or 0.0
            await asyncio.sleep(max(self._polling.interval_ms / 1000, min(retry_after_s, 60.0)))
            try:
                head, body = await self._connection.exchange(request)
                if not head.is_success:
                    raise self._connection.build_status_error(head, body, request)
            except (ConnectionLostError, TargetError) as error:
                broken += 1
                passing = isinstance(error, ConnectionLostError) or error.retryable
                if not passing or broken > policy.max_retries:
                    raise self._build_lost_error(error) from error
                continue
            response, broken = (head, body), 0
            if not self._is_running(response):
                return response

    def _is_running(self, response: HeadAndBody) -> bool:
        """Whether the job is still at work. Raises TargetError where it has failed."""
        head, body = response
        try:
            document = parse_untrusted_json(body)
        except UntrustedJsonError:
            return head.status == ACCEPTED
        failure = find_failure(document, self._failures)
        if failure is not None:
            raise failure
        values = (path.find_first(document) for path in self._polling.status_path)
        status = next((value.lower() for value in values if isinstance(value, str)), None)
        if status is None:
            return head.status == ACCEPTED
        if status in self._polling.failed:
            excerpt = format_excerpt(status.encode("utf-8", "replace"))
            message = f"agent error: its job ended as {excerpt}: {format_excerpt(body)}"
            raise TargetError(message, fault=TargetFault.REFUSED)
        return status not in self._polling.done

    def _build_request(self, response: HeadAndBody, values: PlaceholderValues) -> HttpRequest:
        """Build the request for the status of the job, which must be at the host and port of the agent."""
        head, body = response
        try:
            document = parse_untrusted_json(body)
        except UntrustedJsonError:
            document = None
        job = None if self._id is None else self._id.find_first(document)
        name = "" if isinstance(job, MissingValue | bool) or not isinstance(job, str | int) else str(job)[:_MAX_ID]
        if self._id is not None and name in {"", ".", ".."}:
            raise self._build_location_error(f'the id of its job was not found at "{self._id}"', body)

        def value_of(placeholder: str) -> Placeholder:
            return name if placeholder == "id" else values[placeholder]

        if self._url is not None:
            address = fill_address(self._url, value_of)
        elif self._at is not None:
            location = self._at.find_first(document)
            address = location if isinstance(location, str) else ""
        else:
            address = next((head.get_header(one) for one in _LOCATION_HEADERS if one in head.headers), "")
            if not address and self._template is not None:
                address = str(self._builder.url)
        if not address:
            raise self._build_location_error("it does not give the URL of its job", body)
        url = self._builder.find_agent_address(address)
        if url is None:
            raise self._build_location_error(
                f"the URL of its job is on another host, {format_excerpt(address.encode())}", body
            )
        content = None
        if self._template is not None:
            content = json.dumps(fill_template(self._template, value_of)).encode()
        method = Method.GET if content is None else Method.POST
        return HttpRequest(method, url, self._builder.build_headers(values), content)

    @staticmethod
    def _build_location_error(what: str, body: bytes) -> TargetError:
        return TargetError(
            f"agent error: {what}; the response begins {format_excerpt(body)}",
            fault=TargetFault.MALFORMED,
            hint="set the target's poll: url with {{id}} and idPath, urlPath, or a Location header of the same host",
        )

    def _build_lost_error(self, error: ConnectionLostError | TargetError) -> TargetError:
        if isinstance(error, TargetError):
            error.retryable = False
            error.message += " (status of its job)"
            return error
        why = self._connection.describe_error(error)
        message = f"agent error: the connection broke during the request for its job: {why}"
        return TargetError(message, fault=TargetFault.REFUSED)
