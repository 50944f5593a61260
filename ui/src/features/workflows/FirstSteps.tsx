/** Where there is nothing yet: the example, with one click, or one's own. */
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, onlyIf, take, type ApiProblem } from '@/api/client'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { useSend } from '@/entities/sending'
import { useT } from '@/shared/i18n'
import { Code, Empty } from '@/shared/ui/parts'

const NAME = 'example'
const shell = (name: string, script: string, depends_on: string[] = []) => ({ name, type: 'SHELL', params: { script }, depends_on })
const EXAMPLE = {
  name: NAME,
  description: 'Greets somebody, does two things at once, tells the result.',
  parameters: { who: { default: 'world', description: 'Whom to greet' } },
  tasks: [
    shell('greet', 'echo "Hello, $who!"\necho "greeting=Hello, $who!" >> "$SHOAL_OUTPUT"'),
    shell('count', 'sleep 2\necho "$who has ${#who} letters"', ['greet']),
    shell('repeat', 'for i in 1 2 3; do echo "$greeting"; sleep 1; done', ['greet']),
    shell('done', 'echo "That was $who."', ['count', 'repeat']),
  ],
}
const OWN = 'cat > hello.yaml <<EOF\nname: hello\ntasks:\n  - name: hello\n    type: SHELL\n    params: {script: "echo hello, world"}\nEOF\nshoal apply hello.yaml'

interface Props {
  project: string
  onNew: (what: 'empty' | 'example') => void
}

export function FirstSteps({ project, onNew }: Props) {
  const t = useT()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const send = useSend()
  const refusal = useRefusal('project.edit', project)
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const run = async (): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      await take(api.PUT('/api/v1/projects/{project}/workflows/{name}', { params: { path: { project, name: NAME }, header: onlyIf(undefined) }, body: { ...EXAMPLE, project } as never }))
      await queries.invalidateQueries({ queryKey: ['workflows'] })
      const outcome = await send({ type: 'START', project, workflow: NAME })
      if (outcome?.result_instance_id) await navigate({ to: '/runs/$id', params: { id: String(outcome.result_instance_id) } })
    } catch (thrown) {
      setError(thrown as ApiProblem)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Empty
      title={t('empty.welcome')}
      action={
        <div className="row">
          <Act refusal={refusal} type="primary" size="large" loading={isBusy} onClick={() => void run()}>{t('empty.run')}</Act>
          <Act refusal={refusal} size="large" onClick={() => onNew('example')}>{t('workflows.example')}</Act>
          <Act refusal={refusal} size="large" onClick={() => onNew('empty')}>{t('workflows.new')}</Act>
        </div>
      }
    >
      <p>{t('empty.text')}</p>
      {error ? <Trouble error={error} /> : null}
      <details className="more">
        <summary>{t('empty.own')}</summary>
        <Code text={OWN} />
      </details>
    </Empty>
  )
}
