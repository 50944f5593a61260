/** Sends commands, and tells their outcome. */
import { App } from 'antd'
import { useCallback } from 'react'
import { api, take, type ApiProblem } from '@/api/client'
import type { Command, CommandIn, TypedCommand } from '@/api/types'
import { useNamed, useT } from '@/shared/i18n'

const WAIT_S = 30

/** Returns a function that sends a command and returns its outcome; null: it was refused, or lost. */
export function useSend(): (command: CommandIn) => Promise<Command | null> {
  const t = useT()
  const named = useNamed()
  const { message, notification } = App.useApp()
  return useCallback(
    async (command) => {
      const name = named('command', command.type === 'START' ? 'START' : command.type)
      try {
        // The key makes a repetition of the same request harmless.
        const body = { ...command, idempotency_key: crypto.randomUUID() } as TypedCommand
        const sent = await take(api.POST('/api/v1/commands', { body }))
        const outcome = await outcomeOf(sent)
        if (outcome.state === 'REFUSED') {
          notification.error({ title: t('command.refused', { command: name }), description: outcome.reason })
          return null
        }
        void message.success(t(outcome.state === 'PENDING' ? 'command.sent' : 'command.done', { command: name }))
        return outcome
      } catch (error) {
        const { title, message: text } = error as ApiProblem
        notification.error({ title: title || t('error.unexpected'), description: text })
        return null
      }
    },
    [t, named, message, notification],
  )
}

function outcomeOf(sent: Command): Promise<Command> {
  return take(
    api.GET('/api/v1/commands/{command_id}', {
      params: { path: { command_id: sent.id }, query: { wait: WAIT_S } },
    }),
  )
}
