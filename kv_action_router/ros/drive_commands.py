"""Commands to drives as a driver takes them: three topics, whoever wrote last is in force."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from std_msgs.msg import Float64MultiArray

from kv_action_router.ros import topics
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.wire import FieldReader
from kv_action_router.simulation.drives import Interface

_TOPICS = (
    (Interface.EFFORT, topics.EFFORT_COMMAND),
    (Interface.VELOCITY, topics.VELOCITY_COMMAND),
    (Interface.POSITION, topics.POSITION_COMMAND),
)
_NONE: tuple[tuple[Interface, bytes], ...] = ()


class DriveCommands:
    """Polls the command topics of a driver. One thread may use it."""

    def __init__(self, plane: DataPlane) -> None:
        self._readers = [(which, plane.reader(topic, raw=True)) for which, topic in _TOPICS]
        self._fields = FieldReader(
            Float64MultiArray, ("data", "layout.dim.label", "layout.data_offset")
        )
        self._turn = 0

    def take(self, active: Interface | None) -> Sequence[tuple[Interface, bytes]]:
        """Return new commands in the order in which they came, at most one an interface.

        Looking costs as much as half a physics step: the interface in force is looked at in each
        call, one of the others in turn.
        """
        self._turn = (self._turn + 1) % len(self._readers)
        found: list[tuple[int, Interface, bytes]] = []
        for index, (interface, reader) in enumerate(self._readers):
            if interface is active or index == self._turn:
                taken = reader.take_message()  # of a queue of one: the newest
                if taken is not None:
                    message, came_ns = taken
                    found.append((came_ns, interface, message))
        if not found:
            return _NONE
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        return [(interface, message) for _, interface, message in found]

    def read(self, data: bytes) -> tuple[tuple[float, ...], tuple[str, ...], int]:
        """Return a command's values, the joint of each (none = in the drives' order), and its time.

        The time is CLOCK_MONOTONIC of its sender modulo 2^32 [us]; 0 = it does not say.

        Raises:
            InputError: it is not complete.
        """
        fields = self._fields.read(data)
        assert fields is not None  # the message's only sequence of messages is asked for
        values, names, sent_us = fields
        return values, names, sent_us
