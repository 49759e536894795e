"""The `[sensors]` table: instruments with noise and bias, and the estimator that flies on them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .base import Count, Number, Spec, Unit

Deviation = Annotated[Number, Field(ge=0, le=1e3)]
Bias = Annotated[Number, Field(ge=-100, le=100)]
Lever = Annotated[Number, Field(ge=-100, le=100), Unit("m")]
Angle = Annotated[Number, Field(ge=-90, le=90), Unit("deg")]
Period = Annotated[Number, Field(gt=0, le=10), Unit("s")]
Gain = Annotated[Number, Field(ge=0, le=1e3)]


class ImuSpec(Spec):
    """Accelerometer and gyroscope, read at every control tick. Noise: standard deviation of one sample."""

    position: tuple[Lever, Lever, Lever] = Field(default=(0.0, 0.0, 0.0), description="on the vehicle, body axes")
    accelerometer_bias: tuple[Bias, Bias, Bias] = Field(default=(0.0, 0.0, 0.0), description="m/s^2")
    gyro_bias: tuple[Bias, Bias, Bias] = Field(default=(0.0, 0.0, 0.0), description="rad/s")
    accelerometer_noise: Deviation = Field(default=0.05, description="m/s^2")
    gyro_noise: Deviation = Field(default=0.002, description="rad/s")


class PositioningSpec(Spec):
    """Place and velocity from satellites or cameras. Noise: standard deviation of one fix along each axis."""

    period: Period = Field(default=0.1, description="from fix to fix, whole control periods")
    position_noise: Deviation = Field(default=0.3, description="m; 0.01 for motion capture")
    velocity_noise: Deviation = Field(default=0.05, description="m/s")


class CompassSpec(Spec):
    """Direction of north. Noise: standard deviation of each component of the unit vector."""

    period: Period = Field(default=0.02, description="from reading to reading, whole control periods")
    noise: Deviation = Field(default=0.02, description="no unit; 0.02 is about one degree")


class EstimatorSpec(Spec):
    """An observer of place, velocity, attitude and gyro bias from these instruments; the controller flies on what it says."""

    tilt: Gain = Field(default=0.06, description="s/m^2, attitude by the error of velocity")
    course: Gain = Field(default=1.0, description="1/s, attitude by the compass")
    bias: Gain = Field(default=0.1, description="1/s, gyro bias")
    velocity: Gain = Field(default=4.0, description="1/s")
    position: Gain = Field(default=3.0, description="1/s")
    drift: Gain = Field(default=2.0, description="1/s^2, velocity by the error of place")
    initial_tilt_deg: tuple[Angle, Angle, Angle] = Field(
        default=(0.0, 0.0, 0.0), description="error of the attitude at the start, about body axes"
    )


class SensorsSpec(Spec):
    """What the controllers see of every vehicle, instead of the true state. An empty table is one with all the defaults."""

    imu: ImuSpec = Field(default=ImuSpec(), description="accelerometer and gyroscope")
    positioning: PositioningSpec = Field(default=PositioningSpec(), description="place and velocity")
    compass: CompassSpec = Field(default=CompassSpec(), description="heading")
    estimator: EstimatorSpec = Field(default=EstimatorSpec(), description="what joins them")
    seed: Annotated[Count, Field(ge=0, le=2**32 - 1)] | None = Field(default=None, description="of the noise; by default that of the run")
