/** The fields of workflows, tasks and schedules, as forms show them: from the schema of definitions. */
import { propertiesOf, type Property, type Schema } from '@/shared/schema-form/schema'
import schema from './schema.gen.json'

const root = schema as unknown as Schema

const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && !value.length)

function fieldsOf(spec: Schema | undefined, others: readonly string[]): Property[] {
  return propertiesOf({ ...spec, required: [] }, root)
    .filter((one) => !others.includes(one.name))
    .map((one) => ({
      ...one,
      standard: isEmpty(one.standard) ? undefined : one.standard,
      // Numbers are read as texts there.
      field: one.name === 'labels' ? { kind: 'pairs' as const } : one.field,
    }))
}

// The fields left out have controls of their own.
export const TASK_FIELDS = fieldsOf(root.$defs?.TaskSpec, ['name', 'type', 'params', 'depends_on'])
export const WORKFLOW_FIELDS = fieldsOf(root, ['name', 'project', 'tasks', 'schedules'])
export const SCHEDULE_FIELDS = fieldsOf(root.$defs?.ScheduleSpec, ['cron', 'timezone', 'on_gap', 'on_overlap'])

/** The order of a definition's fields in its text. */
export const WORKFLOW_ORDER: readonly string[] = Object.keys(root.properties ?? {})

/** The title of a field of workflows, in English; `useFieldTexts` has others. */
export const titleOf = (name: string): string => root.properties?.[name]?.title ?? name
