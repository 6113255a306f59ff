"""An agent that answers later: where its job is asked about, and what done and failed look like."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.connection import ACCEPTED, AnswerHead, Connection, LostError, SentRequest, retry_after
from eval_gate.targets.http.paths import Missing, Path
from eval_gate.targets.http.placeholders import Values, fill_template, in_address
from eval_gate.targets.http.requests import Asking
from eval_gate.targets.http.response import EventMatch, failure_in
from eval_gate.targets.http.settings import HttpSettings, Method, Polling
from eval_gate.targets.retry import RetryPolicy
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.quote import quote

_LOCATIONS: Final = ("location", "operation-location", "content-location")
_ID_CHARACTERS: Final = 1_000

Answer = tuple[AnswerHead, bytes]


class Poller:
    """Asks about the jobs of one target until they are done."""

    def __init__(self, settings: HttpSettings, polling: Polling, asking: Asking, connection: Connection) -> None:
        self._polling = polling
        self._url = None if polling.url is None else polling.url.open()
        self._template = polling.request_template.open()
        self._asking = asking
        self._connection = connection
        self._statuses = tuple(Path.parse(path) for path in polling.status_path)
        self._id = None if polling.id_path is None else Path.parse(polling.id_path)
        self._at = None if polling.url_path is None else Path.parse(polling.url_path)
        self._failures = tuple(map(EventMatch.of, settings.failure))

    async def finished(self, answer: Answer, values: Values, policy: RetryPolicy) -> Answer:
        """The answer of the job that this one is about. Raises TargetError, never one that has the job begun anew."""
        limit_s = self._polling.timeout_seconds
        try:
            async with asyncio.timeout(limit_s):
                return await self._finished(answer, values, policy)
        except TimeoutError as error:
            said = f"agent error: its job was not done within {limit_s:g} s"
            raise TargetError(said, fault=TargetFault.LATE) from error

    async def _finished(self, answer: Answer, values: Values, policy: RetryPolicy) -> Answer:
        if not self._is_open(answer):
            return answer
        request, broken = self._request(answer, values), 0
        while True:
            asked_s = retry_after(answer[0].header("retry-after")) or 0.0
            await asyncio.sleep(max(self._polling.interval_ms / 1000, min(asked_s, 60.0)))
            try:
                head, body = await self._connection.exchange(request)
                if not head.is_success:
                    raise self._connection.refused(head, body)
            except (LostError, TargetError) as error:
                broken += 1
                passing = isinstance(error, LostError) or error.retryable
                if not passing or broken > policy.max_retries:
                    raise self._lost(error) from error
                continue
            answer, broken = (head, body), 0
            if not self._is_open(answer):
                return answer

    def _is_open(self, answer: Answer) -> bool:
        """Whether the job is still at work. Raises TargetError where it has failed."""
        head, body = answer
        try:
            document = read_foreign(body)
        except ForeignJsonError:
            return head.status == ACCEPTED
        failure = failure_in(document, self._failures)
        if failure is not None:
            raise failure
        status = self._status(document)
        if status is None:
            return head.status == ACCEPTED
        if status in self._polling.failed:
            shown = quote(status.encode("utf-8", "replace"))
            said = f"agent error: its job ended as {shown}: {quote(body)}"
            raise TargetError(said, fault=TargetFault.REFUSED)
        return status not in self._polling.done

    def _status(self, document: JsonValue) -> str | None:
        found = (path.first_value(document) for path in self._statuses)
        return next((value.lower() for value in found if isinstance(value, str)), None)

    def _request(self, answer: Answer, values: Values) -> SentRequest:
        """What is asked about the job, again and again. Raises TargetError where it is nowhere, or elsewhere."""
        head, body = answer
        try:
            document = read_foreign(body)
        except ForeignJsonError:
            document = None
        job = None if self._id is None else self._id.first_value(document)
        name = "" if isinstance(job, Missing | bool) or not isinstance(job, str | int) else str(job)[:_ID_CHARACTERS]
        if self._id is not None and name in {"", ".", ".."}:
            raise self._nowhere(f'the id of its job is not at "{self._id}"', body)

        def value_of(placeholder: str) -> JsonValue:
            return name if placeholder == "id" else values[placeholder]

        if self._url is not None:
            address = in_address(self._url, value_of)
        elif self._at is not None:
            found = self._at.first_value(document)
            address = found if isinstance(found, str) else ""
        else:
            address = next((head.header(one) for one in _LOCATIONS if one in head.headers), "")
            if not address and self._template is not None:
                address = str(self._asking.url)
        if not address:
            raise self._nowhere("it does not say where its job is asked about", body)
        url = self._asking.address_at_agent(address)
        if url is None:
            raise self._nowhere(f"its job is to be asked about elsewhere, {quote(address.encode())}", body)
        content = None
        if self._template is not None:
            content = json.dumps(fill_template(self._template, value_of)).encode()
        method = Method.GET if content is None else Method.POST
        return SentRequest(method, url, self._asking.headers_of(values), content)

    @staticmethod
    def _nowhere(what: str, body: bytes) -> TargetError:
        return TargetError(
            f"agent error: {what}; the answer begins {quote(body)}",
            fault=TargetFault.MALFORMED,
            hint="describe it with poll: url with {{id}} and idPath, urlPath, or a Location header of the same host",
        )

    def _lost(self, error: LostError | TargetError) -> TargetError:
        if isinstance(error, TargetError):
            error.retryable = False
            error.message += " (asked about its job)"
            return error
        said = f"agent error: the connection broke when its job was asked about: {self._connection.words(error)}"
        return TargetError(said, fault=TargetFault.REFUSED)
