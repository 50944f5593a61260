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
/** What has a default may be left out. */
export type CommandIn = Omit<Schemas['CommandIn'], 'parameters'> & Partial<Pick<Schemas['CommandIn'], 'parameters'>>
export type Cluster = Schemas['ClusterOut']
export type LogPart = Schemas['LogOut']
export type Definition = Schemas['WorkflowSpec']
export type ParameterSpec = Schemas['ParameterSpec']
export type Problem = Schemas['Problem']
export type ProblemField = Schemas['ProblemField']
export type Permission = Schemas['Permission']
export type Role = Schemas['Role']
