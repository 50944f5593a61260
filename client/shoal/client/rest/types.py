"""The JSON that the API answers, by the names that the client's own methods use.

They are made from the description of the API (``operations.generated``). Fields that a newer API
adds pass through. Times are RFC 3339 texts in UTC, such as 2026-11-21T06:00:00Z.
"""

from typing import Any, TypedDict

from shoal.client.rest.operations.generated import types as made

ProjectJson = made.ProjectOut
ParameterJson = made.ParameterOut
SecretJson = made.SecretOut
SecretTestJson = made.SecretTestOut
ProbeJson = made.ProbeOut
AlertJson = made.AlertOut
AlertDetailJson = made.AlertDetail
AlertDeliveryJson = made.AlertDeliveryOut
AlertDeliveryDetailJson = made.AlertDeliveryDetail
AlertExplanationJson = made.AlertExplanationOut
AlertPreviewJson = made.AlertPreviewOut
AlertSilenceJson = made.AlertSilenceOut
AlertChannelKindJson = made.AlertChannelKindOut
DataSourceJson = made.DataSourceOut
DataSourceKindJson = made.DataSourceKindOut
EnvironmentJson = made.EnvironmentOut
EnvironmentDetailJson = made.EnvironmentDetail
ResourceJson = made.ResourceOut
WorkflowJson = made.WorkflowOut
WorkflowDetailJson = made.WorkflowDetail
VersionJson = made.VersionOut
VersionDetailJson = made.VersionDetail
ChangeJson = made.ChangeOut
PublishJson = made.PublishOut
DependencyNodeJson = made.DependencyNode
DependencyEdgeJson = made.DependencyEdge
DependencyGraphJson = made.DependencyGraphOut
DayJson = made.DayOut
GridJson = made.GridOut
GridRunJson = made.GridRun
ScheduleJson = made.ScheduleOut
BulkSchedulesJson = made.BulkSchedulesOut
FireTimeJson = made.FireTimeOut
PreviewJson = made.PreviewOut
CalendarJson = made.CalendarOut
ConcurrencyGroupJson = made.ConcurrencyGroupOut
SlotUserJson = made.SlotUserOut
ConcurrencyGroupDetailJson = made.ConcurrencyGroupDetail
CommandJson = made.CommandOut
ParentJson = made.ParentOut
InstanceJson = made.InstanceOut
TaskInstanceJson = made.TaskOut
TaskDetailJson = made.TaskDetail
InstanceTaskJson = made.InstanceTask
InstanceDetailJson = made.InstanceDetail
ProgressJson = made.ProgressOut
LogJson = made.LogOut
MasterJson = made.MasterOut
WorkerJson = made.WorkerOut
PartitionJson = made.PartitionOut
GroupJson = made.MasterGroupOut
BacklogJson = made.BacklogOut
QueueJson = made.QueueOut
SetAsideJson = made.SetAsideOut
DamagedZnodeJson = made.DamagedZnodeOut
ClusterJson = made.ClusterOut
CheckJson = made.Check
ChecksJson = made.Checks
ClockDifferenceJson = made.ClockDifference
HealthJson = made.Health
TaskTypeJson = made.TaskTypeOut
FindingJson = made.FindingOut
WhyJson = made.WhyOut
LaneJson = made.LaneOut
TodayJson = made.TodayOut
HappenedJson = made.HappenedOut


class EventJson(TypedDict):
    """The data of an event of a stream, which OpenAPI has no words for."""

    id: int
    at: str
    kind: str
    project: str
    instance_id: int | None
    task_instance_id: int | None
    data: dict[str, Any]
