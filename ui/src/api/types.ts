/** Short names of what the API answers with; the types themselves are made from its description. */
import type { components } from './schema.gen'

type Schemas = components['schemas']

export type Me = Schemas['MeOut']
export type Project = Schemas['ProjectOut']
export type Workflow = Schemas['WorkflowOut']
export type WorkflowDetail = Schemas['WorkflowDetail']
export type Version = Schemas['VersionOut']
export type Schedule = Schemas['ScheduleOut']
export type FireTime = Schemas['FireTimeOut']
export type Instance = Schemas['InstanceOut']
export type InstanceDetail = Schemas['InstanceDetail']
export type InstanceTask = Schemas['InstanceTask']
export type Task = Schemas['TaskOut']
export type TaskDetail = Schemas['TaskDetail']
export type TaskState = Schemas['TaskState']
export type WorkflowState = Schemas['WorkflowState']
export type Finding = Schemas['FindingOut']
export type Command = Schemas['CommandOut']
type FieldsOf<T> = T extends T ? keyof T : never
type ValueOf<T, K extends PropertyKey> = T extends T ? (K extends keyof T ? T[K] : never) : never
/** As the API takes it: each type of command has its fields. */
export type TypedCommand = Schemas['CommandIn']
/** A command of any type, while it is put together. */
export type CommandIn = { type: TypedCommand['type'] } & {
  [K in Exclude<FieldsOf<TypedCommand>, 'type'>]?: ValueOf<TypedCommand, K>
}
export type Cluster = Schemas['ClusterOut']
export type LogPart = Schemas['LogOut']
export type Definition = Schemas['WorkflowSpec']
export type ParameterSpec = Schemas['ParameterSpec']
export type Problem = Schemas['Problem']
export type ProblemField = Schemas['ProblemField']
export type Permission = Schemas['Permission']
export type Role = Schemas['Role']
export type Draft = Schemas['DraftDetail']
export type TaskType = Schemas['TaskTypeOut']
export type WorkflowPlan = Schemas['WorkflowPlanOut']
export type VersionComparison = Schemas['ComparisonOut']
export type SchedulePlan = Schemas['SchedulePlanOut']
export type TaskSpec = Schemas['TaskSpec']
export type ScheduleSpec = Schemas['ScheduleSpec']
