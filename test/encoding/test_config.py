"""Parameters are refused with their name, limit and value."""

import pytest

from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import ConfigError


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"target_radius": 0.0}, "target_radius"),
        ({"camera_position": (0.0, 1.0)}, "camera_position"),
        ({"camera_orientation": (0.0, 0.0, 0.0, 0.0)}, "camera_orientation"),
        ({"depth_maximum": 0.1, "depth_minimum": 0.2}, "depth_maximum"),
        ({"robot_id": "a b"}, "robot_id"),
        ({"pairing_tolerance": 0.04}, "pairing_tolerance"),
        ({"key_rate": "fast"}, "key_rate"),
    ],
)
def test_bad_value_is_refused(values, names):
    with pytest.raises(ConfigError, match=names):
        EncoderConfig(**values)


def test_integer_is_a_rate_and_domain_defaults_to_the_identity():
    config = EncoderConfig(key_rate=50, robot_id="agv-01")
    assert config.key_rate == 50.0
    assert isinstance(config.key_rate, float)
    assert config.domain_name == "agv-01"
    assert EncoderConfig(domain="hall").domain_name == "hall"


def test_every_parameter_is_described():
    for name, (_, info) in EncoderConfig.parameters().items():
        assert info.description, name
