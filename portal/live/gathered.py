"""Questions of many requests, answered by one call: after a restart thousands of streams ask who they are at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from contextvars import Context
from typing import Generic, TypeVar

Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")
# As many as are answered in some tenths of a second, so that the first are not kept until the last are known.
AT_ONCE = 500


class Gathered(Generic[Question, Answer]):
    """Used by the event loop alone. What is asked during a call is answered by the next one."""

    def __init__(
        self,
        answers: Callable[[Collection[Question]], Mapping[Question, Answer]],
        in_thread: Callable[..., Awaitable[Mapping[Question, Answer]]],
    ) -> None:
        """`answers`: has an answer for each of the questions. `in_thread` calls it with them in a thread."""
        self._answers, self._in_thread = answers, in_thread
        self._asked: dict[Question, asyncio.Future[Answer]] = {}
        self._answering: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Questions that no call has begun to answer."""
        return len(self._asked)

    async def ask(self, question: Question) -> Answer:
        """Raises what the call for all of them raised."""
        future = self._asked.get(question)
        if future is None:
            future = self._asked[question] = asyncio.get_running_loop().create_future()
        if self._answering is None:
            # An empty context: the call is for all who ask and belongs to no request.
            self._answering = asyncio.create_task(self._answer_all(), context=Context())
        # Who goes away ends only its own wait: another may have asked the same.
        return await asyncio.shield(future)

    async def _answer_all(self) -> None:
        try:
            while self._asked:
                taken = {question: self._asked.pop(question) for question in list(self._asked)[:AT_ONCE]}
                try:
                    found = await self._in_thread(self._answers, taken.keys())
                except Exception as error:
                    for future in taken.values():
                        future.set_exception(error)
                else:
                    for question, future in taken.items():
                        future.set_result(found[question])
        finally:
            self._answering = None
