/** Receivers as their form has them. Pure. */
import type { AlertReceiver, AlertReceiverIn } from '@/api/types'
import { ownZone } from '../fields'

export interface Rotation {
  start: string
  at: string
  timezone: string
  weeks: number
}

export interface Values {
  name: string
  description: string
  members: { name: string; targets: { channel: string; to: string[] }[] }[]
  hasRotation: boolean
  rotation: Rotation
}

type Stored = Omit<Values, 'name' | 'hasRotation' | 'rotation'> & { rotation: Rotation | null }

export function specOf(receiver: AlertReceiver): Stored {
  return receiver.spec as unknown as Stored
}

/** A member with one target; the first channel, if there is no other. */
export function freshMember(channels: readonly string[]): Values['members'][number] {
  return { name: '', targets: [{ channel: channels.length === 1 ? (channels[0] ?? '') : '', to: [] }] }
}

export function freshRotation(today: string): Rotation {
  return { start: today, at: '09:00', timezone: ownZone(), weeks: 1 }
}

export function valuesOf(receiver: AlertReceiver, today: string): Partial<Values> {
  const { rotation, ...spec } = specOf(receiver)
  return { ...spec, name: receiver.name, hasRotation: rotation !== null, rotation: rotation ?? freshRotation(today) }
}

export function bodyOf({ description, members, hasRotation, rotation }: Values): AlertReceiverIn {
  return {
    description: description ?? '',
    members: members.map((one) => ({ name: one.name ?? '', targets: one.targets.map((target) => ({ channel: target.channel, to: target.to ?? [] })) })),
    rotation: hasRotation ? rotation : null,
  }
}
