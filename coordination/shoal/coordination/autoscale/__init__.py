"""As many workers as there is work for: one elected process decides, and a target obeys.

- ``decision``: how many there should be, as a pure function of what was seen.
- ``scaler.Autoscaler``: observes, decides and acts for as long as this process is the leader.
- ``local_processes.LocalProcesses``: a target whose workers are processes of this machine.
"""

from shoal.coordination.autoscale.decision import (
    Observation,
    ScalingSettings,
    ScalingState,
    decide,
)
from shoal.coordination.autoscale.local_processes import LocalProcesses
from shoal.coordination.autoscale.scaler import Autoscaler, ScaleTarget

__all__ = [
    "Autoscaler",
    "LocalProcesses",
    "Observation",
    "ScaleTarget",
    "ScalingSettings",
    "ScalingState",
    "decide",
]
