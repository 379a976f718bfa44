"""Parameters of perception: what the target looks like, and who looks for it."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError


@dataclass(frozen=True)
class TargetConfig(Configuration):
    """What the thing to act on looks like, and how well it must be seen.

    The target is a flat disc of one color that lies on a horizontal surface; its frame sits at the
    center of its top face.
    """

    target_hue: float = parameter(
        308.0, "hue of the target's color", unit="deg", minimum=0.0, maximum=360.0
    )
    target_hue_tolerance: float = parameter(
        18.0, "half width of the band of hues", unit="deg", minimum=1.0, maximum=90.0
    )
    target_saturation_minimum: float = parameter(
        0.35, "saturation below which a pixel has no color", minimum=0.0, maximum=1.0
    )
    target_value_minimum: float = parameter(
        0.12, "brightness below which a pixel has no color", minimum=0.0, maximum=1.0
    )
    target_radius: float = parameter(
        0.020, "radius of the target's top face", unit="m", minimum=0.002, maximum=0.5
    )
    target_height: float = parameter(
        0.010, "height of the target's side wall", unit="m", minimum=0.0, maximum=0.5
    )
    target_pixels_minimum: int = parameter(
        20,
        "pixels of the top face with depth that an estimate needs",
        minimum=6,
        maximum=100_000,
    )
    target_deviation_maximum: float = parameter(
        0.003,
        "largest standard deviation of the center along any axis; a worse estimate is none",
        unit="m",
        minimum=0.0001,
        maximum=0.5,
    )
    depth_minimum: float = parameter(
        0.10, "nearest depth that counts", unit="m", minimum=0.001, maximum=10.0
    )
    depth_maximum: float = parameter(
        4.0, "farthest depth that counts", unit="m", minimum=0.05, maximum=50.0
    )

    other_targets: tuple[str, ...] = parameter(
        ("",),
        "names of further targets, which tasks choose by; each is like the first but for its "
        "color; one empty name = there are none",
    )
    other_target_hues: tuple[float, ...] = parameter(
        (0.0,), "hue of each further target's color", unit="deg", minimum=0.0, maximum=360.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.other_target_hues) != len(self.other_targets):
            raise ConfigError(
                "other_target_hues",
                f"{len(self.other_targets)} numbers, one for each of other_targets",
                self.other_target_hues,
            )
        if self.depth_maximum <= self.depth_minimum:
            raise ConfigError(
                "depth_maximum",
                f"above depth_minimum {self.depth_minimum} m",
                self.depth_maximum,
            )

    @property
    def hues(self) -> dict[str, float]:
        """Hue of each target's color by its name [deg]; the first one's name is empty."""
        others = zip(self.other_targets, self.other_target_hues, strict=True)
        return {name: hue for name, hue in others if name} | {"": self.target_hue}


@dataclass(frozen=True)
class PerceptionConfig(Configuration):
    """Who finds the target in the images."""

    perception: str = parameter(
        "segmentation",
        "how the target is found: by its color, or by a trained network that onnxruntime or torch "
        "computes",
        choices=("segmentation", "onnx", "torch"),
    )
    checkpoint: str = parameter(
        "disc",
        "trained network: a folder, or the name of one that comes with the package; "
        "segmentation needs none",
    )
    surface_height: float = parameter(
        0.0, "height of the level surface that work lies on", unit="m", minimum=-5.0, maximum=5.0
    )
    surface_tolerance: float = parameter(
        0.012,
        "error of that height, as the camera sees it, beyond which the camera was moved and there "
        "is no target; 0 = not checked",
        unit="m",
        minimum=0.0,
        maximum=0.5,
    )
    surface_tilt_maximum: float = parameter(
        0.025,
        "tilt of that surface, as the camera sees it, beyond which the camera was moved",
        unit="rad",
        minimum=0.001,
        maximum=0.5,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.perception != "segmentation" and not self.checkpoint:
            raise ConfigError("checkpoint", "a folder or name, for a trained network", "")
