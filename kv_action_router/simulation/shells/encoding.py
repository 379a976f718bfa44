"""Stage 1 in an episode: the rates of keys, and what the encoder hears."""

from __future__ import annotations

from collections.abc import Sequence

from kv_action_router.contracts import SLICES, TaskKey, TaskState
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import CellPlant, Samples
from kv_action_router.simulation.sight import TargetSource
from kv_action_router.simulation.stopwatch import Stopwatch

_BODY_SHARE = 0.6  # of a key's period that must have passed since the last key


class Encoding:
    """Stage 1: a key for each image, and 100 a second between them."""

    def __init__(
        self,
        config: EncoderConfig,
        robot: RobotModel,
        source: TargetSource,
        times: Stopwatch,
        masked_slices: Sequence[str] = (),
    ) -> None:
        self._encoder = KeyEncoder(config, robot)
        self._source = source
        self._times = times
        self._masked = [SLICES[name] for name in masked_slices]
        self._period_ns = round(1e9 / config.key_rate)
        self._due_ns = 0
        self._last_ns = 0

    def hear(self, task: TaskState | None, epoch: int) -> None:
        """Take the newest task state, and the injector's epoch."""
        if task is not None:
            self._encoder.on_task(task)
        self._encoder.on_epoch(epoch)

    def __call__(self, samples: Samples, plant: CellPlant) -> TaskKey | None:
        """Return the key that is due, if any."""
        encoder, joints, now_ns = self._encoder, samples.joints, samples.now_ns
        encoder.joints.update(
            joints.names, joints.position, joints.velocity, joints.effort, now_ns, now_ns
        )
        if samples.imu is not None:
            encoder.inputs.on_imu(samples.imu)
        if samples.drives is not None:
            encoder.inputs.on_drives(samples.drives)
        origin = Origin(now_ns, now_ns, now_ns)
        key = None
        if samples.image_due:
            key = self._source.look(encoder, plant, origin, self._times)
        if key is None and now_ns >= self._due_ns:
            if now_ns - self._last_ns < _BODY_SHARE * self._period_ns:
                return None
            with self._times.measure("encode joints"):
                key = encoder.on_body(now_ns, origin)
        if key is None:
            return None
        self._last_ns = now_ns
        self._due_ns = (now_ns // self._period_ns + 1) * self._period_ns
        for part in self._masked:  # the key is the encoder's to give away: nobody else has it yet
            key.vector[part] = 0.0
        return key
