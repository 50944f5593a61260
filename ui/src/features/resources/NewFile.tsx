/** A new text file. */
import { Form, Input } from 'antd'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { store } from './content'
import { isPath } from './folders'

export function NewFile({ project, folder, refusal, onStored, onClose }: { project: string; folder: string; refusal: string | null; onStored: (path: string) => void; onClose: () => void }) {
  const t = useT()
  const save = async ({ path, text }: { path: string; text?: string }): Promise<void> => {
    await store(project, path, new Blob([text ?? '']), 0, () => undefined)
    onStored(path)
  }
  const check = (_: unknown, path: string): Promise<void> => (isPath(path ?? '') ? Promise.resolve() : Promise.reject(new Error(t('resources.path.wrong'))))
  return (
    <FormDrawer<{ path: string; text?: string }> wide title={t('resources.new')} initial={{ path: folder ? `${folder}/` : '' }} submit={t('common.save')} refusal={refusal} onClose={onClose} onSave={save}>
      <Form.Item name="path" label={t('resources.path')} rules={[{ validator: check }]}><Input className="mono" autoFocus placeholder="etl/clean.sh" /></Form.Item>
      <Form.Item name="text" label={t('resources.content')}><Input.TextArea className="mono" autoSize={{ minRows: 14, maxRows: 40 }} spellCheck={false} /></Form.Item>
    </FormDrawer>
  )
}
