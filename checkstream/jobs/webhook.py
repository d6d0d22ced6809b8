"""Calls the webhooks of routes, one signed POST a job. A call that fails is a failed job: the queue tries again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from checkstream.errors import JobError, JobInvalid, NoticeUnsent
from checkstream.jobs.clock import wall_ms
from checkstream.jobs.reaction import read_webhook_job
from checkstream.jobs.terms import Job
from checkstream.jobs.worker import Outcome
from checkstream.webhooks import Hook, call


class WebhookCaller:
    """Handles jobs of kind `webhook`."""

    def __init__(self, hooks: Mapping[str, Hook], *, now_ms: Callable[[], int] = wall_ms) -> None:
        """Call `hooks`, by route; `now_ms` is the wall clock."""
        self._hooks = hooks
        self._now_ms = now_ms

    async def __call__(self, job: Job) -> Outcome:
        """Call the webhook.

        Raises:
            JobInvalid: the route has no webhook any more, or the job can't be read.
            JobError: the receiver can't be reached, or did not answer with 2xx.
        """
        route, notice = read_webhook_job(job)
        hook = self._hooks.get(route)
        if hook is None:
            raise JobInvalid(f"the route `{route}` has no webhook; name one under its `grounding`, or leave it so")
        try:
            await call(route, hook, job.id, self._now_ms() // 1000, msgspec.json.encode(notice))
        except NoticeUnsent as error:
            raise JobError(str(error)) from error
        return Outcome()
