"""Transitions of ``cache_manager``: a configure that fails leaves nothing, and can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from lifecycle_msgs.msg import Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState, GetState  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.lifecycle import TransitionCallbackReturn  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from kv_action_router.caching.node import CacheManagerNode  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.timeout(120)]

PATIENCE_S = 45.0


class Operator:
    """Somebody who drives a lifecycle node by its services."""

    def __init__(self, context: Any) -> None:
        self.node = rclpy.create_node("operator", context=context)
        self.executor = rclpy.executors.SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)

    def call(self, kind: Any, name: str, **fields: Any) -> Any:
        client = self.node.create_client(kind, f"cache_manager/{name}")
        assert client.wait_for_service(PATIENCE_S), f"{name} is not there"
        future = client.call_async(kind.Request(**fields))
        self.executor.spin_until_future_complete(future, PATIENCE_S)
        assert future.done(), f"{name} did not answer"
        return future.result()

    def change(self, transition: int) -> bool:
        request = Transition(id=transition)
        return self.call(ChangeState, "change_state", transition=request).success

    def set(self, **values: Any) -> list[Any]:
        parameters = [Parameter(n, value=v).to_parameter_msg() for n, v in values.items()]
        return self.call(SetParameters, "set_parameters", parameters=parameters).results

    @property
    def state(self) -> str:
        return self.call(GetState, "get_state").current_state.label

    def services(self) -> set[str]:
        names = {service.name for service in (topics.QUERY, topics.INVALIDATE)}
        return {name.lstrip("/") for name, _ in self.node.get_service_names_and_types()} & names


def test_mended_configure_and_second_round(
    spawn: Callable[..., Any], ros: Any, wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    missing = tmp_path / "missing.yaml"
    process = spawn(
        "kv_action_router.caching.node", "--ros-args", "-p", f"execution_values:={missing}"
    )
    operator = Operator(ros)
    assert not operator.change(Transition.TRANSITION_CONFIGURE)
    assert operator.state == "unconfigured"
    assert str(missing) in process.output()
    assert "Traceback" in process.output()  # the cause is logged
    assert not operator.services()

    assert all(result.successful for result in operator.set(execution_values=""))
    (refused,) = operator.set(threshold=3.0)
    assert not refused.successful
    assert "threshold must be at most 1.0" in refused.reason
    assert not operator.change(Transition.TRANSITION_ACTIVATE)  # not from here
    for _ in range(2):
        assert operator.change(Transition.TRANSITION_CONFIGURE)
        wait_until(lambda: len(operator.services()) == 2, 20.0, "services")
        assert operator.change(Transition.TRANSITION_ACTIVATE)
        assert operator.state == "active"
        (refused,) = operator.set(capacity=7)
        assert not refused.successful
        assert operator.change(Transition.TRANSITION_DEACTIVATE)
        assert operator.change(Transition.TRANSITION_ACTIVATE)
        assert operator.change(Transition.TRANSITION_DEACTIVATE)
        assert operator.change(Transition.TRANSITION_CLEANUP)
        wait_until(lambda: not operator.services(), 20.0, "end of the services")
    assert process.running
    operator.executor.shutdown()
    operator.node.destroy_node()


def test_timers_that_fire_after_the_clean_up_end_nothing(ros: Any) -> None:
    node = CacheManagerNode(context=ros)
    try:
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        late = [timer.callback for timer in node.timers]
        assert {node._tell_statistics, node._tell_decisions} <= set(late)
        node.shut_down("test")
        for callback in late:
            callback()
    finally:
        node.destroy_node()
