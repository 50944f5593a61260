/** No job has made results yet: what to do. */
import { CopyOutlined } from '@ant-design/icons'
import { App, Button } from 'antd'
import { useT } from '@/shared/i18n'
import { Empty } from '@/shared/ui/parts'

const COMMAND = 'shoal insight setup'

export function NotYet({ onAgain }: { onAgain: () => void }) {
  const t = useT()
  return (
    <Empty title={t('insight.none')} action={<Button onClick={onAgain}>{t('insight.again')}</Button>}>
      <p>{t('insight.none.text')}</p>
      <Command text={COMMAND} />
    </Empty>
  )
}

/** A line for a terminal, to be copied. */
export function Command({ text }: { text: string }) {
  const t = useT()
  const { message } = App.useApp()
  // Where the page may not write to the clipboard, the text can still be chosen by hand.
  const copy = (): void => void navigator.clipboard?.writeText(text).then(() => message.success(t('insight.copied'))).catch(() => message.info(text))
  return (
    <div className="insight-command">
      <code>{text}</code>
      <Button size="small" type="text" icon={<CopyOutlined />} onClick={copy}>{t('insight.copy')}</Button>
    </div>
  )
}
