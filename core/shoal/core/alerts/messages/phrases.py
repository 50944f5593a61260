"""The words of messages, in each language."""

from collections.abc import Mapping

from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.records import DeliveryKind
from shoal.core.alerts.rules import Language

_EN: Mapping[str, str] = {
    Trigger.RUN_SUCCEEDED: "{workflow} succeeded",
    Trigger.RUN_FAILED: "{workflow} failed",
    Trigger.RUN_STOPPED: "{workflow} was stopped",
    Trigger.RUN_TIMED_OUT: "{workflow} runs longer than its timeout",
    Trigger.RUN_LATE: "{workflow} is late",
    Trigger.TASK_SUCCEEDED: "{workflow}: {task}",
    Trigger.TASK_WARNED: "{workflow}: the data of {task} are not as they should be",
    Trigger.TASK_FAILED: "{workflow}: task {task} failed",
    Trigger.TASK_RETRYING: "{workflow}: task {task} failed and is tried again",
    Trigger.TASK_TIMED_OUT: "{workflow}: task {task} runs longer than its timeout",
    Trigger.TASK_LOST: "{workflow}: the worker of task {task} is gone",
    Trigger.BACKFILL_DONE: "{workflow}: the backfill is done",
    Trigger.BACKFILL_FAILED: "{workflow}: dates of the backfill failed",
    Trigger.SCHEDULE_PAUSED: "{workflow}: a schedule was paused",
    Trigger.SCHEDULE_SKIPPED: "{workflow}: a schedule left fire times out",
    Trigger.WORKFLOW_NOT_STARTED: "{workflow} has not started",
    Trigger.WORKFLOW_NOT_FINISHED: "{workflow} has not finished",
    Trigger.WORKFLOW_NO_SUCCESS: "{workflow} has not succeeded for too long",
    Trigger.WORKFLOW_LOW_SUCCESS_RATE: "{workflow} fails too often",
    Trigger.WORKER_GONE: "a worker is gone",
    Trigger.MASTER_GONE: "a master is gone",
    Trigger.CLUSTER_DEGRADED: "the cluster is degraded",
    DeliveryKind.FIRING: "{what}",
    DeliveryKind.REMINDER: "still: {what}",
    DeliveryKind.ESCALATION: "not acknowledged: {what}",
    DeliveryKind.RESOLVED: "recovered: {what}",
    DeliveryKind.TEST: "a test of the channel {channel}",
    "and_more": "{what} and {count} more",
    "run": "run {id} for {time}, version {version}, {state}",
    "more": "and {count} more alerts",
    "resolved": "recovered at {time}",
    "task": "task",
    "state": "state",
    "took": "took",
    "reason": "reason",
    "at": "at",
    "footer": "Rule {rule} of project {project}, receiver {receiver}.",
    "test": "This is a test of this channel. If you can read this, it works.",
}
_ZH: Mapping[str, str] = {
    Trigger.RUN_SUCCEEDED: "{workflow} 成功",
    Trigger.RUN_FAILED: "{workflow} 失败",
    Trigger.RUN_STOPPED: "{workflow} 已被停止",
    Trigger.RUN_TIMED_OUT: "{workflow} 运行超时",
    Trigger.RUN_LATE: "{workflow} 已延迟",
    Trigger.TASK_SUCCEEDED: "{workflow}：{task}",
    Trigger.TASK_WARNED: "{workflow}：{task} 的数据不符合要求",
    Trigger.TASK_FAILED: "{workflow}：任务 {task} 失败",
    Trigger.TASK_RETRYING: "{workflow}：任务 {task} 失败，正在重试",
    Trigger.TASK_TIMED_OUT: "{workflow}：任务 {task} 运行超时",
    Trigger.TASK_LOST: "{workflow}：任务 {task} 的 worker 已失联",
    Trigger.BACKFILL_DONE: "{workflow}：补数完成",
    Trigger.BACKFILL_FAILED: "{workflow}：补数中有日期失败",
    Trigger.SCHEDULE_PAUSED: "{workflow}：定时已暂停",
    Trigger.SCHEDULE_SKIPPED: "{workflow}：定时跳过了触发时间",
    Trigger.WORKFLOW_NOT_STARTED: "{workflow} 未按时开始",
    Trigger.WORKFLOW_NOT_FINISHED: "{workflow} 未按时完成",
    Trigger.WORKFLOW_NO_SUCCESS: "{workflow} 太久没有成功",
    Trigger.WORKFLOW_LOW_SUCCESS_RATE: "{workflow} 失败过于频繁",
    Trigger.WORKER_GONE: "worker 已失联",
    Trigger.MASTER_GONE: "master 已失联",
    Trigger.CLUSTER_DEGRADED: "集群状态异常",
    DeliveryKind.FIRING: "{what}",
    DeliveryKind.REMINDER: "仍未恢复：{what}",
    DeliveryKind.ESCALATION: "无人确认：{what}",
    DeliveryKind.RESOLVED: "已恢复：{what}",
    DeliveryKind.TEST: "通道 {channel} 的测试",
    "and_more": "{what} 及另外 {count} 条",
    "run": "运行 {id}，逻辑时间 {time}，版本 {version}，{state}",
    "more": "另有 {count} 条告警",
    "resolved": "于 {time} 恢复",
    "task": "任务",
    "state": "状态",
    "took": "耗时",
    "reason": "原因",
    "at": "时间",
    "footer": "项目 {project} 的规则 {rule}，接收者 {receiver}。",
    "test": "有人在测试此通道。如果您能看到这条消息，说明通道可用。",
}
_ALL: Mapping[Language, Mapping[str, str]] = {Language.ENGLISH: _EN, Language.CHINESE: _ZH}


def phrase(language: Language, key: str, **values: object) -> str:
    """Return a phrase with its values, which stand for themselves whatever they hold."""
    return _ALL[language][key].format(**values)
