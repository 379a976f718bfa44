"""The thread that renders: takes the newest snapshot, hands out color and depth."""

from __future__ import annotations

import threading
from collections.abc import Callable

import mujoco
import numpy as np

from kv_action_router.errors import SimulationError
from kv_action_router.simulation.camera import Camera, Snapshot
from kv_action_router.simulation.config import SimulationConfig

_START_S = 20.0
_HINT = "a software renderer is needed: apt-get install libegl1 libgl1-mesa-dri, and MUJOCO_GL=egl"


class RenderThread:
    """Renders snapshots beside the physics.

    Invariant: a snapshot that comes while one is waiting replaces it; :attr:`skipped` counts them.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        config: SimulationConfig,
        deliver: Callable[[Camera, Snapshot], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """Prepare; nothing runs before :meth:`start`.

        Args:
            model: scene; only read, and never while its physics would change what is seen.
            config: of the camera.
            deliver: called on this thread with the camera that holds the images.
            on_error: receives what rendering or ``deliver`` raised, on this thread.
        """
        self._model = model
        self._config = config
        self._deliver = deliver
        self._on_error = on_error
        self._snapshot: Snapshot | None = None
        self._wake = threading.Event()
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._running = False
        self._thread = threading.Thread(target=self._run, name="camera", daemon=True)
        self.skipped = 0

    def start(self) -> None:
        """Start the thread and wait until it can render.

        Raises:
            SimulationError: it cannot; the message says what to install.
        """
        self._running = True
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise SimulationError(f"camera did not start within {_START_S} s; {_HINT}")
        if self._failure is not None:
            raise SimulationError(f"camera cannot render: {self._failure}; {_HINT}")

    def submit(self, snapshot: Snapshot) -> None:
        """Ask for an image of a snapshot; returns at once."""
        if self._snapshot is not None:
            self.skipped += 1
        self._snapshot = snapshot
        self._wake.set()

    def stop(self) -> None:
        """Stop and join the thread."""
        self._running = False
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            camera = Camera(self._model, self._config, np.random.default_rng(self._config.seed + 1))
        except Exception as error:  # handed to whoever started the thread
            self._failure = error
            self._ready.set()
            return
        self._ready.set()
        while self._running:
            self._wake.wait()
            self._wake.clear()
            snapshot, self._snapshot = self._snapshot, None
            if snapshot is None:
                continue
            try:
                camera.render(snapshot)
                self._deliver(camera, snapshot)
            except Exception as error:  # one bad image must not end the stream
                self._on_error(error)
        camera.close()
