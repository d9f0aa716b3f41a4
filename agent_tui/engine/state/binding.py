"""What the agent works on: one session with one model, as one value that is swapped whole."""

from __future__ import annotations

import asyncio

from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.runtime.runtime import Runtime
from agent_tui.engine.session.conversation import Conversation
from agent_tui.errors import AgentError
from agent_tui.models.requests import ModelInfo
from agent_tui.providers.catalog import images_of
from agent_tui.providers.dialects.record import USUAL_IMAGES, ImageLimits

STILL_OPENING = "The session is still opening."


class Binding:
    """A session, the model it talks to and its compaction. Another session or model is another binding.

    The model's facts may still have to come: until then what the configuration says stands in.
    """

    def __init__(self, runtime: Runtime, compaction: CompactionService) -> None:
        self._runtime = runtime
        self._compaction = compaction
        self._described = asyncio.Event()
        self._failed = False

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    @property
    def compaction(self) -> CompactionService:
        return self._compaction

    @property
    def conversation(self) -> Conversation:
        return self._runtime.conversation

    @property
    def described(self) -> bool:
        """Whether the model's facts have been asked for, with or without an answer."""
        return self._described.is_set()

    @property
    def failed(self) -> bool:
        """Whether there was no answer: they are to be asked for again."""
        return self._failed

    def describe_as(self, info: ModelInfo, failed: bool = False) -> None:
        """The model's facts have come, or (``failed``) what is to stand in for them until they do."""
        self._runtime.describe_as(info)
        self._failed = failed
        self._described.set()

    async def until_described(self) -> None:
        await self._described.wait()


class Bindings:
    """Holds the binding that is in force."""

    def __init__(self) -> None:
        self._current: Binding | None = None

    @property
    def opened(self) -> bool:
        return self._current is not None

    @property
    def current(self) -> Binding:
        """Raises AgentError before the first session is opened; the only place that does."""
        if self._current is None:
            raise AgentError(STILL_OPENING)
        return self._current

    @property
    def image_limits(self) -> ImageLimits:
        """What the model in use takes of images; the usual before the first session is opened."""
        return images_of(self._current.runtime.info.target) if self._current is not None else USUAL_IMAGES

    def is_current(self, binding: Binding) -> bool:
        return binding is self._current

    def swap(self, binding: Binding) -> None:
        """From here on everything is done with this one."""
        self._current = binding
