"""The node ``behavior_synthesizer``: a lifecycle shell around the synthesizer.

Subscriptions: ``cache_match``, ``condition``, ``execution_feedback`` (wake the data loop),
``obstacle_spheres`` (polled).
Publishers: ``trajectory_chunk``, ``task_state`` (latched, at every change and at 2 Hz while a task
is under way), ``entry_update``, ``failure_event``; ``stop`` (engages only, when it ends in motion).
Action: ``execute_task``; one goal at a time, another is rejected.
Services: ``~/interrupt``, ``~/resume``, ``~/limit_speed``.
Parameters: ``synthesis/config.py``.
"""

from __future__ import annotations

import gc
import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from rclpy.duration import Duration
from threadpoolctl import threadpool_limits

from kv_action_router.contracts import TrajectoryChunk
from kv_action_router.errors import RouterError, TaskTransitionError
from kv_action_router.msg import EntryUpdate as EntryUpdateMessage
from kv_action_router.msg import Stop
from kv_action_router.msg import TaskState as TaskStateMessage
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.conversions import entry_update_to_msg, task_state_to_msg
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.process import run
from kv_action_router.ros.streams import DataLoop
from kv_action_router.ros.synthesizer_streams import SynthesizerStreams
from kv_action_router.ros.task_server import TaskServer, course_of
from kv_action_router.ros.wire import ChunkWriter
from kv_action_router.srv import InterruptExecution, LimitSpeed, ResumeExecution
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.policy_process import PolicyProcess
from kv_action_router.synthesis.policy_source import PolicySource
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer
from kv_action_router.synthesis.warmup import warm_up
from kv_action_router.tasks.definition import load_task

NAME = "behavior_synthesizer"
TICK_NS = 30_000_000  # at the latest; matches come more often
LOOK_NS = 9_000_000  # feedback, which may tell of a stop, and obstacles are read this often
STATE_PERIOD_NS = 500_000_000
STOP_PATIENCE = Duration(seconds=0.3)
ANSWER_TIMEOUT_S = 0.5  # a service waits this long for the data loop at most
DECISIONS_A_SECOND = 10  # by which decision ids of a restarted process are surely higher


class BehaviorSynthesizerNode(StageNode[SynthesisConfig]):
    """Threads: the data loop owns the synthesizer; the executor hands it commands by a queue."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(NAME, SynthesisConfig, **arguments)
        self._synthesizer: BehaviorSynthesizer | None = None
        self._loop: DataLoop | None = None
        self._commands: queue.SimpleQueue[Callable[[int], None]] = queue.SimpleQueue()
        self._made: list[tuple[Callable[[Any], Any], Any]] = []
        self._chunk_writer = ChunkWriter()
        self._state_message = TaskStateMessage()
        self._update_message = EntryUpdateMessage()
        self._state_sequence = 0
        self._state_version = -1
        self._state_due_ns = self._tick_due_ns = 0
        self._look_due_ns = 0

    @property
    def epoch(self) -> int:
        """The injector's epoch that its newest feedback told."""
        return 0 if self._synthesizer is None else self._synthesizer.tracking.epoch

    @property
    def synthesizer(self) -> BehaviorSynthesizer:
        """The stage itself; exists from configure to clean-up. It belongs to the data loop."""
        if self._synthesizer is None:
            raise TaskTransitionError(f"{NAME} is not configured")
        return self._synthesizer

    # --- transitions ------------------------------------------------------------------------

    def configure_stage(self) -> None:
        """Load the robot, warm up, subscribe, offer action and services."""
        config = self.config
        threadpool_limits(1)  # more BLAS threads turn small products into spikes of milliseconds
        model = RobotModel.load(config.robot, prefix=config.joint_prefix)
        # Ids go on rising when the process is started again: the cache asks for newer ones.
        first = int(time.monotonic() * DECISIONS_A_SECOND) % 0x7FFFFFFF + 1
        for chunk in warm_up(model, config):
            self._chunk_writer.write(chunk, 0)
        self._synthesizer = BehaviorSynthesizer(
            model, config, source=self._policy_source(model), first_decision=first
        )
        self._streams = SynthesizerStreams(self.plane, model)
        self._chunks = BytesPublisher(self, topics.TRAJECTORY_CHUNK)
        self._keep(BytesPublisher.close, self._chunks)
        self._states = self._publisher(topics.TASK_STATE)
        self._updates = self._publisher(topics.ENTRY_UPDATE)
        self._stops = self._publisher(topics.STOP)
        for service, answer in (
            (topics.INTERRUPT, self._on_interrupt),
            (topics.RESUME, self._on_resume),
            (topics.LIMIT_SPEED, self._on_limit_speed),
        ):
            self._keep(
                self.destroy_service, self.create_service(service.type, service.name, answer)
            )
        self._server = TaskServer(self, self._do, self._refuse_goal)

    def _policy_source(self, model: RobotModel) -> PolicySource | None:
        """Return the configured policy as a source of motions; None = misses are replanned."""
        config = self.config
        if not config.policy:
            return None
        asker = PolicyProcess(config.policy)
        self._keep(PolicyProcess.close, asker)
        return PolicySource(model, config, asker, Clearance(model, config))

    def activate_stage(self) -> None:
        """Begin to answer matches."""
        gc.collect()
        gc.freeze()
        self._state_version = -1
        self._loop = DataLoop(
            self.plane,
            [self._streams.matches, self._streams.conditions],
            self._on_wake,
            self.loop_failed,
            period_ns=TICK_NS,
            name="synthesis",
        )
        self.start_beating_loop(self._loop)

    def deactivate_stage(self) -> None:
        """End a task under way; the injector ramps to rest on its path."""
        self._loop = None
        if self._synthesizer is None:
            return
        tasks = self._synthesizer.tasks
        if tasks.stack.active:
            if self._synthesizer.motion.reference is not None:
                self._engage_stop("deactivated while a task was under way")
            tasks.give_up(TaskTransitionError.error_code, f"{NAME} was deactivated", _now())
            self._publish_state(_now())
        self._synthesizer.motion.drop()
        self._server.tell(course_of(self._synthesizer, _now()))

    def cleanup_stage(self) -> None:
        """Destroy action, services and publishers; the readers go with the data plane."""
        if "_server" in self.__dict__:
            self.__dict__.pop("_server").destroy()
        for destroy, thing in reversed(self._made):
            destroy(thing)
        self._made.clear()
        self._synthesizer = None

    # --- data loop ----------------------------------------------------------------------------

    def _on_wake(self, now_ns: int) -> None:
        synthesizer = self.synthesizer
        tasks = synthesizer.tasks
        match = self._streams.take_match(synthesizer, now_ns)  # raises what it cannot read ...
        conditions = self._streams.take_conditions()  # ... and then no condition is lost
        asked = bool(conditions) or not self._commands.empty()
        tick_is_due = now_ns >= self._tick_due_ns
        if asked or match is not None or tick_is_due or synthesizer.due(now_ns):
            self._streams.take_joints(synthesizer)
        if tick_is_due:  # no match has brought joints for long
            self._streams.take_feedback(synthesizer)
        while not self._commands.empty():
            self._commands.get()(now_ns)
        for condition in conditions:
            tasks.on_condition(condition, _now())
        if match is not None:
            self._publish_chunk(synthesizer.on_match(match, _now()))
        # a continuation's trigger is the joint state: it waits for a fresh one, of the next match
        if asked or tick_is_due or synthesizer.tracking.just_saw_joints(now_ns):
            self._tick_due_ns = now_ns + TICK_NS
            self._publish_chunk(synthesizer.on_tick(_now()))
        if asked or (match is None and now_ns >= self._look_due_ns):  # no decision waits for it
            self._look_due_ns = now_ns + LOOK_NS
            self._streams.take_feedback(synthesizer)
            self._streams.take_obstacles(synthesizer)
        while tasks.updates:
            update = entry_update_to_msg(tasks.updates.popleft(), self._update_message)
            self._updates.publish(update)
        changed = tasks.stack.version != self._state_version
        if changed or (tasks.stack.active and now_ns >= self._state_due_ns):
            self._publish_state(now_ns)
        while tasks.reports:
            report = tasks.reports.popleft()
            self.report(
                report.error_code,
                report.message,
                detector="synthesizer",
                value=report.value,
                limit=report.limit,
            )

    def _publish_chunk(self, chunk: TrajectoryChunk | None) -> None:
        if chunk is not None:
            self._chunks.publish(self._chunk_writer.write(chunk, _now()))

    def _publish_state(self, now_ns: int) -> None:
        tasks = self.synthesizer.tasks
        self._state_version = tasks.stack.version
        self._state_due_ns = now_ns + STATE_PERIOD_NS
        self._state_sequence += 1
        state = tasks.state(now_ns, self._state_sequence)
        message = task_state_to_msg(state, self._state_message)
        message.decision.header.stamp = self.get_clock().now().to_msg()
        self._states.publish(message)

    # --- control plane ------------------------------------------------------------------------

    def _do(self, action: Callable[[BehaviorSynthesizer, int], Any]) -> Any:
        """Let the data loop do something and return its result.

        Raises:
            RouterError: what the action raised, or the node is not active.
        """
        loop = self._loop
        if loop is None:
            raise TaskTransitionError(f"{NAME} is not active")
        answer: Future[Any] = Future()

        def command(now_ns: int) -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(action(self.synthesizer, now_ns))
            except Exception as error:
                answer.set_exception(error)

        self._commands.put(command)
        loop.wake()
        try:
            return answer.result(ANSWER_TIMEOUT_S)
        except TimeoutError:
            answer.cancel()
            raise TaskTransitionError(f"data loop gave no answer in {ANSWER_TIMEOUT_S} s") from None

    def _on_interrupt(
        self, request: InterruptExecution.Request, response: InterruptExecution.Response
    ) -> InterruptExecution.Response:
        source = request.source or "unnamed"

        def interrupt(synthesizer: BehaviorSynthesizer, now_ns: int) -> str:
            synthesizer.tasks.interrupt(source, request.reason, now_ns, sequence)
            _describe(synthesizer, now_ns, response)
            return f"stops on its path; held by {synthesizer.tasks.stack.holders()}"

        try:  # read here: the data loop waits for no file
            sequence = load_task(request.sequence) if request.sequence else None
        except RouterError as error:
            response.success, response.message = False, str(error)
            return response
        return self._answer(response, interrupt)

    def _on_resume(
        self, request: ResumeExecution.Request, response: ResumeExecution.Response
    ) -> ResumeExecution.Response:
        def resume(synthesizer: BehaviorSynthesizer, now_ns: int) -> str:
            runs = synthesizer.tasks.resume(request.source, now_ns)
            _describe(synthesizer, now_ns, response)
            return "goes on" if runs else f"still held by {synthesizer.tasks.stack.holders()}"

        return self._answer(response, resume)

    def _on_limit_speed(
        self, request: LimitSpeed.Request, response: LimitSpeed.Response
    ) -> LimitSpeed.Response:
        def limit(synthesizer: BehaviorSynthesizer, now_ns: int) -> str:
            motion = synthesizer.motion
            motion.limit_speed(request.source, request.scale, request.reason, now_ns)
            response.scale = motion.speed.scale
            return motion.speed.describe()

        return self._answer(response, limit)

    def _answer(self, response: Any, action: Callable[[BehaviorSynthesizer, int], str]) -> Any:
        try:
            response.message = self._do(action)
            response.success = True
        except RouterError as error:
            response.success, response.message = False, str(error)
        return response

    def _refuse_goal(self) -> str:
        """Return why a goal can't be taken now, or an empty text."""
        if self._loop is None:
            return f"{NAME} is not active"
        stack = self.synthesizer.tasks.stack
        return f"a task is under way ({stack.status.name})" if stack.active else ""

    def _engage_stop(self, reason: str) -> None:
        message = Stop(engaged=True, source=NAME, reason=reason, monotonic_ns=_now())
        message.header.stamp = self.get_clock().now().to_msg()
        self._stops.publish(message)
        self._stops.wait_for_all_acked(STOP_PATIENCE)  # the writer may be destroyed right after

    def _publisher(self, topic: topics.Topic) -> Any:
        publisher = self.create_publisher(topic.type, topic.name, topic.profile())
        self._keep(self.destroy_publisher, publisher)
        return publisher

    def _keep(self, destroy: Callable[[Any], Any], thing: Any) -> None:
        self._made.append((destroy, thing))


def _describe(synthesizer: BehaviorSynthesizer, now_ns: int, response: Any) -> None:
    """Fill in task, stage and phase of a service's answer."""
    frame = synthesizer.tasks.stack.frame
    response.task, response.stage = frame.definition.name, frame.stage.name
    response.phase = float(synthesizer.tasks.phase(now_ns))


def _now() -> int:
    return time.monotonic_ns()


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM."""
    return run(lambda: [BehaviorSynthesizerNode()], arguments)


if __name__ == "__main__":
    raise SystemExit(main())
