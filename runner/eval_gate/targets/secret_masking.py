"""Mask secrets in everything that a target returns: responses, errors and notices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from eval_gate.model.conversation import Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.targets.base import BatchTarget, Request, Target, TargetError
from eval_gate.targets.setup import NO_SETUP, TargetPrograms, TargetSetup
from eval_gate.text.redaction import Redactor


def mask_target(target: Target, redact: Redactor, setup: TargetSetup | None = None) -> Target:
    """Wrap a target so that secrets are masked in everything it returns. `setup` is what run results show of it."""
    wrapper = MaskedBatchTarget if isinstance(target, BatchTarget) else MaskedTarget
    return wrapper(target, redact, setup)


class MaskedTarget:
    """Wrapper of a target that masks all known secrets in everything it returns."""

    def __init__(self, inner: Target, redact: Redactor, setup: TargetSetup | None = None) -> None:
        self.inner = inner
        self.workers, self.timeout_ms = inner.workers, inner.timeout_ms
        self.takes_stubs, self.workspace_problem = inner.takes_stubs, inner.workspace_problem
        self.conversation_problem, self.remembers_turns = inner.conversation_problem, inner.remembers_turns
        self.sends_traceparent, self.origin = inner.sends_traceparent, inner.origin
        self.retry_policy = inner.retry_policy
        self._redact = redact
        self._setup = setup

    @property
    def identity(self) -> TargetIdentity:
        """What the target is and how it was set up, without secrets."""
        identity = self.inner.identity
        return self._redact.mask_struct(self._setup.apply_to(identity) if self._setup else identity)

    @property
    def setup(self) -> TargetSetup:
        """How it was set up, in full: only `identity` is without secrets."""
        return self._setup or NO_SETUP

    @property
    def programs(self) -> TargetPrograms | None:
        """Commands of a target that starts a program; None for any other."""
        return self.setup.programs

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices of the target, without secrets."""
        return tuple(map(self._redact, self.inner.notices))

    async def respond(self, request: Request) -> Response:
        """Return the response of the target, with secrets masked. Raises TargetError."""
        with self._mask_errors():
            return self._redact.mask_struct(await self.inner.respond(request))

    async def check_health(self) -> None:
        """Ask the target's health check. Raises TargetError."""
        with self._mask_errors():
            await self.inner.check_health()

    async def aclose(self) -> None:
        """Give back what the target holds."""
        await self.inner.aclose()

    @contextmanager
    def _mask_errors(self) -> Iterator[None]:
        try:
            yield
        except TargetError as error:
            error.mask_secrets(self._redact.mask_message)
            raise


class MaskedBatchTarget(MaskedTarget):
    """Wrapper of a batch target that masks all known secrets in everything it returns."""

    inner: BatchTarget

    @property
    def batches(self) -> bool:
        """Whether the target sends batches."""
        return self.inner.batches

    async def respond_batch(self, requests: Sequence[Request]) -> Mapping[str, Response]:
        """Return the responses of the target by case id, with secrets masked. Raises TargetError."""
        with self._mask_errors():
            responses = await self.inner.respond_batch(requests)
            return {case_id: self._redact.mask_struct(response) for case_id, response in responses.items()}
