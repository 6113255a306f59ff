"""The same jobs through the whole action: a process, an agent, and everything that is asked of GitHub over loopback."""

from __future__ import annotations

import json
from collections.abc import Callable

from eval_gate.errors import GateError
from tests.support.github.results_service import runtime_token
from tests.support.jobs import Ended
from tests.support.jobs import Job as Machine
from tests.support.simulation.gate import EVALS, Job, Runner, Said, check_out
from tests.support.simulation.repository import CASES, GATES, Extent, GateRun
from tests.support.simulation.story import Story
from tests.support.world import Script

QUICK = {"timeout-ms": "5000", "max-retries": "0", "concurrency": "3", "reruns": "0"}


class WholeRunner(Runner):
    """A machine that runs the step."""

    whole = True

    def __init__(self, machine: Machine, script: Script) -> None:
        self.github, self._machine, self._script = machine.github, machine, script
        self._run_id = 0
        for gate in GATES:
            machine.write_suite(CASES, EVALS.format(gate=gate).rpartition("/")[2])

    def judge(self, job: Job, here: str, at: str) -> Said:
        del at  # it is the machine's time
        ended = self._step(job, here)
        lines = tuple(ended.log.splitlines())
        if ended.code == 2:
            raise GateError("refused", ended.log)
        record = json.loads((self._machine.workspace / ended.outputs["result-path"]).read_text())
        found = record["comparison"]
        if found is None:
            # what is not known about a baseline matters, and is seen, where a case fails
            return Said(ended.code, None, ended.code == 3 if "F" in here else None, {}, lines=lines)
        changes = {int(one["caseId"][-1]): one["change"] for one in found["changes"]}
        facts = found["baseline"]
        return Said(
            ended.code, facts["sha"], False, changes, facts.get("baseSha"), facts.get("commitsSince"), lines=lines
        )

    def begin(self, job: Job, run: GateRun, story: Story) -> Callable[[], None]:
        """Run it now, and show what it has stored when it ends."""
        if run.extent is Extent.NOTHING:
            return lambda: None
        artifacts = self.github.state.artifacts
        before = set(artifacts)
        letters = "C" * CASES if run.extent is Extent.OUTAGE else run.values
        ended = self._step(job, letters, **({"case": "gs-000"} if run.extent is Extent.SOME else {}))
        assert ended.outputs.get("artifact-id"), ended.log
        run.passed = ended.code == 0
        stored = {number: artifacts.pop(number) for number in set(artifacts) - before}

        def end() -> None:
            for artifact in stored.values():
                artifact.created_at, artifact.expired = story.repository.at(run.ended), run.expired
            artifacts.update(stored)

        return end

    def _step(self, job: Job, letters: str, **inputs: str) -> Ended:
        github = self.github
        if job.run_id != self._run_id:
            self._run_id = github.current_run_id = job.run_id
            github.results.uploads.clear()  # a name is taken within its run only
        github.runtime_token = runtime_token(run=f"backend-of-{job.run_id}", job=job.gate)
        check_out(self._machine.workspace, job.checkout)
        self._script.begin(letters)
        given = QUICK | {"agent-endpoint": self._script.url, "evals": EVALS.format(gate=job.gate)} | inputs
        given |= {"baseline-branch": job.baseline_branch} if job.baseline_branch else {}
        variables = {"GITHUB_JOB": job.gate, "GITHUB_SHA": job.sha, "GITHUB_REF": job.ref}
        return self._machine.step(job.event_name, job.event, given, **variables)
