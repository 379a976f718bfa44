"""The service ``simulation/place_box``: a box that stands in the way, or no longer does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rclpy.node import Node

from kv_action_router.errors import InputError, RouterError, SimulationError
from kv_action_router.ros import topics
from kv_action_router.simulation.placement import yaw_of
from kv_action_router.simulation.plant import Plant
from kv_action_router.srv import PlaceBox

HEIGHT_TOLERANCE = 1.0e-3  # [m] the box stands on the table


class BoxService:
    """Serves requests on the executor; the box belongs to the thread of the physics."""

    def __init__(
        self, node: Node, plant: Plant, call: Callable[[Callable[[], None]], bool]
    ) -> None:
        """Offer the service.

        Args:
            node: that offers it.
            plant: whose box it is.
            call: runs a function on the thread of the physics and says whether it has run.
        """
        self._plant = plant
        self._call = call
        service = topics.PLACE_BOX
        node.create_service(service.type, service.name, self.answer)

    def answer(self, request: PlaceBox.Request, response: PlaceBox.Response) -> PlaceBox.Response:
        """Place the box or take it away, and say what is now."""
        try:
            response.message = self._serve(request)
            response.success = True
        except RouterError as error:
            response.success, response.message = False, str(error)
        box = self._plant.box
        response.present, response.touched_by = box.present, box.touched_by
        return response

    def _serve(self, request: PlaceBox.Request) -> str:
        if request.remove:
            self._on_physics(self._plant.box.remove)
            return "the box is away"
        at, turn, size = request.pose.position, request.pose.orientation, request.size
        if not abs(at.z) <= HEIGHT_TOLERANCE:
            raise InputError("pose.position.z", "0 m (the box stands on the table)", at.z)
        yaw = yaw_of(np.array([turn.x, turn.y, turn.z, turn.w]))
        edges = np.array([size.x, size.y, size.z])
        self._on_physics(lambda: self._plant.place_box(at.x, at.y, edges, yaw))
        return f"box at x {at.x:.3f} m, y {at.y:.3f} m"

    def _on_physics(self, work: Callable[[], None]) -> None:
        refused: list[RouterError] = []

        def guarded() -> None:
            try:
                work()
            except RouterError as error:
                refused.append(error)

        if not self._call(guarded):
            raise SimulationError(
                "the physics loop did not answer within 1 s; the box is as it was"
            )
        if refused:
            raise refused[0]
