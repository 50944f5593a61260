/** The keys, all of them. */
import { Modal } from 'antd'
import { useT, type TextKey } from '@/shared/i18n'
import '@/shared/i18n/help'

const KEYS: readonly [string, TextKey][] = [
  ['Ctrl K', 'help.palette'],
  ['?', 'help.help'],
  ['/', 'help.search'],
  ['j  k', 'help.rows'],
  ['Enter', 'help.open'],
  ['Esc', 'help.escape'],
  ['g t', 'help.goToday'],
  ['g w', 'help.goWorkflows'],
  ['g r', 'help.goRuns'],
  ['g l', 'help.goAlerts'],
  ['g i', 'help.goInsight'],
  ['g p', 'help.goProjects'],
  ['g c', 'help.goCluster'],
  ['p', 'help.pause'],
  ['r', 'help.recover'],
  ['f', 'help.follow'],
  ['w', 'help.wrap'],
]

export function Help({ onClose }: { onClose: () => void }) {
  const t = useT()
  return (
    <Modal open onCancel={onClose} footer={null} title={t('help.title')}>
      <dl className="keys">
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{t(text)}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  )
}
