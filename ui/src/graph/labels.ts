/** What a screen reader says of a picture and its controls. */
import '@/shared/i18n/graph'
import { useT } from '@/shared/i18n'

export function useLabels() {
  const t = useT()
  return {
    'node.a11yDescription.default': t('graph.open'),
    'node.a11yDescription.keyboardDisabled': t('graph.open'),
    'edge.a11yDescription.default': '',
    'controls.ariaLabel': t('graph.controls'),
    'controls.zoomIn.ariaLabel': t('graph.zoomIn'),
    'controls.zoomOut.ariaLabel': t('graph.zoomOut'),
    'controls.fitView.ariaLabel': t('graph.fit'),
    'minimap.ariaLabel': t('graph.map'),
  }
}
