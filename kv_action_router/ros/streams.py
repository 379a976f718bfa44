"""The data plane: newest-sample readers and the thread that waits for them.

Where only the newest sample counts, a callback a sample is waste. The readers here live on a hidden
helper node that no executor serves: a thread of the owner polls them, or waits for them in a wait
set of its own and goes to work. The control plane (services, transitions, parameters, latched
topics) stays on the node's executor, so a slow service call never stands before a decision.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile

from kv_action_router.ros.topics import Topic

M = TypeVar("M")

_STALL_NS = 100_000_000  # a loop that has not come round for this long is no longer alive
_LONGEST_WAIT_NS = 16_000_000


class Sample(NamedTuple):
    """One received message and its times.

    Attributes:
        message: the ROS message (bytes for a raw reader).
        receipt_ns: CLOCK_MONOTONIC at which it reached this process [ns], never later than the
            truth allows: without a wall clock to trust, it is the time of the previous poll.
        origin_ns: DDS source time stamp, moved to CLOCK_MONOTONIC [ns].
        number: publication sequence number of its writer; gaps count overwritten samples.
    """

    message: Any
    receipt_ns: int
    origin_ns: int
    number: int


class DataPlane:
    """Owns the helper node of a node's polled subscriptions.

    Invariant: every reader made on it is destroyed with it; no executor ever serves it.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._helper = Node(
            f"_{node.get_name()}_streams",
            context=node.context,
            namespace=node.get_namespace(),
            use_global_arguments=True,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._readers: list[LatestReader[Any]] = []

    @property
    def node(self) -> Node:
        """The node that owns this plane."""
        return self._node

    def reader(
        self,
        topic: Topic,
        *,
        profile: QoSProfile | None = None,
        raw: bool = False,
    ) -> LatestReader[Any]:
        """Subscribe to a topic for polling.

        It carries no event handlers: a pending event makes every wait on its subscription return at
        once (measured: 3 times the CPU), and the events executor does not survive that a handler
        is removed while its event is queued. The monitor polls the events (``ros/transport.py``).

        Args:
            topic: what to read.
            profile: reader's profile; None = the publisher's own, without events that nobody takes.
            raw: hand out serialized bytes instead of messages.
        """
        subscription = self._helper.create_subscription(
            topic.type,
            topic.name,
            _never_called,
            profile or _unwatched(topic.profile()),
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            raw=raw,
        )
        reader = LatestReader(subscription)
        self._readers.append(reader)
        return reader

    def leave(self, reader: LatestReader[Any]) -> None:
        """Unsubscribe a reader of this plane; on the thread that polls it."""
        self._readers.remove(reader)
        reader.close()
        self._helper.destroy_subscription(reader.subscription)

    def guard_condition(self) -> Any:
        """Return a guard condition that can end a wait."""
        return self._helper.create_guard_condition(_never_called)

    def destroy(self) -> None:
        """Destroy all readers and the helper node; loops on them must have been joined before."""
        while self._readers:
            self.leave(self._readers[-1])
        self._helper.destroy_node()


def _unwatched(profile: QoSProfile) -> QoSProfile:
    """Return a profile for a reader whose deadline and liveliness events nobody takes.

    Each requested deadline is a timer that DDS sets anew with every sample, on a thread of its own;
    the failure monitor asks for all of them once.
    """
    return QoSProfile(
        history=profile.history,
        depth=profile.depth,
        reliability=profile.reliability,
        durability=profile.durability,
    )


def _never_called(*_: Any) -> None:
    raise RuntimeError("a polled subscription was served by an executor")


class LatestReader(Generic[M]):
    """Polls one subscription. One thread at a time may use it.

    Invariant: the subscription's handle is held until :meth:`close`; holding it for each take costs
    as much as an empty take.
    """

    def __init__(self, subscription: Any) -> None:
        self.subscription = subscription
        self._handle = subscription.handle
        self._handle.__enter__()
        self._take = self._handle.take_message
        self._type = subscription.msg_type
        self._raw = subscription.raw
        self._shallow = subscription.qos_profile.depth == 1
        self._last_poll_ns = time.monotonic_ns()

    def take(self) -> Sample | None:
        """Return the oldest unread sample (with depth 1: the newest), or None. Empty costs 2 µs."""
        taken = self._take(self._type, self._raw)
        now = time.monotonic_ns()
        if taken is None:
            self._last_poll_ns = now
            return None
        last = self._last_poll_ns
        if self._shallow:
            self._last_poll_ns = now  # a deeper queue may still hold samples that came before
        message, info = taken
        wall = time.time_ns()
        source, received = info["source_timestamp"], info["received_timestamp"]
        age = wall - received
        receipt = now - age if 0 <= age <= now - last else min(last, now)
        transport = received - source
        origin = receipt - transport if 0 <= transport < 1_000_000_000 else receipt
        return Sample(message, receipt, origin, info["publication_sequence_number"])

    def take_message(self) -> tuple[Any, int] | None:
        """Return the oldest unread message and when it came (wall clock) [ns], or None.

        For readers who order messages but need no age: it costs two thirds of :meth:`take`, and
        samples that are taken beside it know their receipt less well.
        """
        taken = self._take(self._type, self._raw)
        if taken is None:
            return None
        message, info = taken
        return message, info["received_timestamp"]

    def take_newest(self) -> Sample | None:
        """Return the newest unread sample of a deeper queue and drop the rest, or None."""
        newest = None
        while (sample := self.take()) is not None:
            newest = sample
        return newest

    def found_empty(self, now_ns: int) -> None:
        """Note that a wait set saw nothing to read at this instant."""
        self._last_poll_ns = now_ns

    def close(self) -> None:
        """Let go of the subscription; nothing may be taken any more."""
        self._handle.__exit__(None, None, None)


class DataLoop:
    """A thread that waits for samples (or a period) and calls ``on_wake(now_ns)``.

    Exceptions of ``on_wake`` go to ``on_error`` and the loop goes on: the node lives.

    Attributes:
        on_round: called with CLOCK_MONOTONIC [ns] behind the work of each round; must not raise.
    """

    def __init__(
        self,
        plane: DataPlane,
        wait_for: Sequence[LatestReader[Any]],
        on_wake: Callable[[int], None],
        on_error: Callable[[Exception], None],
        *,
        period_ns: int | None = None,
        name: str = "data",
    ) -> None:
        """Prepare the loop; nothing runs before :meth:`start`.

        Args:
            plane: owner of the readers.
            wait_for: readers whose samples end a wait.
            on_wake: takes the samples and works; called with CLOCK_MONOTONIC [ns].
            on_error: receives what ``on_wake`` raised, on the loop's thread.
            period_ns: wake at least at this absolute period too [ns]; None = on samples only.
            name: of the thread.
        """
        self._readers = tuple(wait_for)
        self._on_wake = on_wake
        self._on_error = on_error
        self._period_ns = period_ns
        self._guard = plane.guard_condition()
        self._wait_set = _rclpy.WaitSet(
            len(self._readers), 1, 0, 0, 0, 0, plane.node.context.handle
        )
        self._running = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.last_wake_ns = 0
        self.on_round: Callable[[int], None] | None = None

    def start(self) -> None:
        """Start the thread."""
        self._running = True
        self.last_wake_ns = time.monotonic_ns()
        self._thread.start()

    def wake(self) -> None:
        """End the present wait; ``on_wake`` is called at once. Any thread may call this."""
        self._guard.trigger()

    def stop(self) -> None:
        """Stop and join the thread; returns when ``on_wake`` can no longer run."""
        self._running = False
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._guard.trigger()
            self._thread.join()

    def alive(self, now_ns: int) -> bool:
        """Return whether the loop has come round lately."""
        return self._thread.is_alive() and now_ns - self.last_wake_ns < _STALL_NS

    def _run(self) -> None:
        due = time.monotonic_ns() + (self._period_ns or 0)
        while self._running:
            now = time.monotonic_ns()
            self.last_wake_ns = now
            wait = _LONGEST_WAIT_NS
            if self._period_ns is not None:
                wait = min(wait, max(0, due - now))
            samples, woken = self._wait(wait)
            now = time.monotonic_ns()
            periodic = self._period_ns is not None and now >= due
            if self._period_ns is not None and periodic:
                due += self._period_ns * (1 + (now - due) // self._period_ns)
            if not self._running:
                return
            if samples or woken or periodic:
                self._call(now)
            if self.on_round is not None:
                self.on_round(now)

    def _call(self, now_ns: int) -> None:
        try:
            self._on_wake(now_ns)
        except Exception as error:
            try:
                self._on_error(error)
            except Exception:
                traceback.print_exc()

    def _wait(self, timeout_ns: int) -> tuple[bool, bool]:
        wait_set = self._wait_set
        wait_set.clear_entities()
        for reader in self._readers:
            wait_set.add_subscription(reader.subscription.handle)
        wait_set.add_guard_condition(self._guard.handle)
        wait_set.wait(timeout_ns)
        ready = wait_set.get_ready_entities("subscription")
        if len(ready) < len(self._readers):
            now = time.monotonic_ns()
            for reader in self._readers:
                if reader.subscription.handle.pointer not in ready:
                    reader.found_empty(now)
        return bool(ready), bool(wait_set.get_ready_entities("guard_condition"))
