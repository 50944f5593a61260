/** What is shown in the place of a page. */
import { Link } from '@tanstack/react-router'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { Empty } from '@/shared/ui/parts'

export function Missing() {
  const t = useT()
  return (
    <Empty title={t('error.notFound')} action={<Link to="/today">{t('error.home')}</Link>}>
      {t('error.notFound.detail')}
    </Empty>
  )
}

export function Failed({ error }: { error: Error }) {
  return <Trouble error={error} retry={() => location.reload()} />
}
