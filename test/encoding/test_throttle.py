"""Each name passes once in a period."""

from encoding_builders import MS

from kv_action_router.encoding.throttle import Throttle


def test_once_in_a_period_and_name():
    throttle = Throttle(1.0)
    assert throttle.allows("a", 0)
    assert throttle.allows("b", 0)
    assert not throttle.allows("a", 999 * MS)
    assert throttle.allows("a", 1000 * MS)
    assert not throttle.allows("a", 1001 * MS)
