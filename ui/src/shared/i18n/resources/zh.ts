/** 项目文件页面的中文文本。 */
import type { ResourceKey } from './en'

type WithoutOne<K> = K extends `${string}_one` ? never : K

export const resourcesZh: Record<WithoutOne<ResourceKey>, string> = {
  'resources.title': '资源',
  'resources.none': '还没有文件',
  'resources.none.text': '资源是任务使用的文件：脚本、jar、表格。每次更改产生一个版本；运行使用它开始时的版本。',
  'resources.upload': '上传文件',
  'resources.drop': '将文件拖到这里，或选择文件',
  'resources.into': '到文件夹',
  'resources.root': '全部文件',
  'resources.new': '新建文本文件',
  'resources.path': '路径',
  'resources.path.wrong': '不是有效路径：最多 20 段，不能为空、. 或 ..',
  'resources.size': '大小',
  'resources.version': '版本',
  'resources.versions': '版本',
  'resources.content': '内容',
  'resources.diff': '更改',
  'resources.download': '下载',
  'resources.notText': '这不是文本，或太大无法显示（{{size}}）。请下载。',
  'resources.same': '两个版本相同。',
  'resources.stale': '期间有人存储了版本 {{version}}。您的文本保留在这里；再次存储前请查看更改。',
  'resources.delete.text': '此后开始的运行找不到它。其版本在一段时间内仍可按版本号使用。',
  'resources.uploaded_other': '已存储 {{count}} 个文件。',
  'resources.asText': '编辑文本',
  'resources.saveAs': '保存为版本 {{version}}',
  'resources.files_other': '{{count}} 个文件',
}
