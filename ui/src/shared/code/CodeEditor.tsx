/**
 * An editor of text in a language: CodeMirror, as a controlled field.
 *
 * `value` is the truth. What is typed is told by `onChange`; what comes from elsewhere changes only
 * the part that differs, so the cursor and the view stay. Undo and redo are those of the page.
 */
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionSource } from '@codemirror/autocomplete'
import { defaultKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Annotation, Compartment, EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { difference } from './difference'
import { languageOf, type CodeLanguage } from './languages'
import './code.css'

export interface Mark {
  line: number // from 1
  message: string
}

interface Props {
  value: string
  onChange: (value: string) => void
  language: CodeLanguage
  label: string
  readOnly?: boolean
  marks?: readonly Mark[]
  complete?: CompletionSource | undefined
  /** A line to go to; a new object goes there again. */
  goTo?: { line: number } | undefined
  onCursor?: (offset: number) => void
  onUndo?: () => void
  onRedo?: () => void
  isSmall?: boolean
}

const FROM_OUTSIDE = Annotation.define<boolean>()

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.attributeName, tags.definition(tags.propertyName)], class: 'cm-key' },
  { tag: [tags.string, tags.special(tags.string)], class: 'cm-string' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], class: 'cm-value' },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], class: 'cm-comment' },
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.modifier], class: 'cm-keyword' },
  { tag: [tags.function(tags.variableName), tags.standard(tags.name)], class: 'cm-function' },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.meta], class: 'cm-mark' },
])

export function CodeEditor(props: Props) {
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const told = useRef(props)
  told.current = props
  const { value, language, readOnly = false, marks, goTo, label, isSmall = false } = props
  const parts = useRef({ readOnly: new Compartment(), label: new Compartment() })

  useEffect(() => {
    if (!box.current) return
    const made = new EditorView({
      parent: box.current,
      state: EditorState.create({ doc: told.current.value, extensions: extensionsOf(language, isSmall, told, parts.current) }),
    })
    view.current = made
    return () => {
      made.destroy()
      view.current = null
    }
  }, [language, isSmall])

  useEffect(() => {
    const { readOnly: own, label: named } = parts.current
    view.current?.dispatch({ effects: [own.reconfigure(readOnlyExtension(readOnly)), named.reconfigure(EditorView.contentAttributes.of({ 'aria-label': label }))] })
  }, [readOnly, label, language, isSmall])

  useEffect(() => {
    const own = view.current
    const change = own && difference(own.state.doc.toString(), value)
    if (change) own.dispatch({ changes: change, annotations: FROM_OUTSIDE.of(true) })
  }, [value])

  useEffect(() => {
    const own = view.current
    if (!own) return
    const { doc } = own.state
    const found = (marks ?? []).map((mark): Diagnostic => {
      const line = doc.line(Math.min(Math.max(1, mark.line), doc.lines))
      const from = line.from + (line.text.length - line.text.trimStart().length)
      return { from, to: Math.max(from, line.to), severity: 'error', message: mark.message }
    })
    own.dispatch(setDiagnostics(own.state, found))
  }, [marks, value])

  useEffect(() => {
    const own = view.current
    if (!own || !goTo) return
    const line = own.state.doc.line(Math.min(Math.max(1, goTo.line), own.state.doc.lines))
    own.dispatch({ selection: { anchor: line.from + (line.text.length - line.text.trimStart().length) }, effects: EditorView.scrollIntoView(line.from, { y: 'center' }) })
    own.focus()
  }, [goTo])

  return <div ref={box} className={isSmall ? 'code-editor small' : 'code-editor'} />
}

function readOnlyExtension(readOnly: boolean): Extension {
  return [EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly), readOnly ? EditorView.contentAttributes.of({ tabindex: '0' }) : []]
}

function extensionsOf(language: CodeLanguage, isSmall: boolean, told: { readonly current: Props }, parts: { readOnly: Compartment; label: Compartment }): Extension[] {
  const act = (key: 'onUndo' | 'onRedo') => (): boolean => {
    told.current[key]?.()
    return true
  }
  const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce
  return [
    nonce ? EditorView.cspNonce.of(nonce) : [],
    isSmall ? [] : [lineNumbers(), foldGutter(), highlightActiveLineGutter(), lintGutter(), highlightActiveLine()],
    drawSelection(), bracketMatching(), closeBrackets(), indentOnInput(), highlightSelectionMatches(), search({ top: true }),
    EditorState.tabSize.of(2), indentUnit.of(language === 'python' ? '    ' : '  '),
    languageOf(language),
    syntaxHighlighting(COLOURS),
    autocompletion({ override: [(context) => told.current.complete?.(context) ?? null], activateOnTyping: true, icons: false }),
    parts.readOnly.of(readOnlyExtension(told.current.readOnly ?? false)),
    parts.label.of(EditorView.contentAttributes.of({ 'aria-label': told.current.label })),
    keymap.of([
      { key: 'Mod-z', run: act('onUndo'), preventDefault: true },
      { key: 'Mod-Shift-z', run: act('onRedo'), preventDefault: true },
      { key: 'Mod-y', run: act('onRedo'), preventDefault: true },
      { key: 'Tab', run: acceptCompletion },
      // Escape, then Tab, leaves the field: else the keyboard would be caught in it.
      { key: 'Escape', run: (own) => (own.contentDOM.blur(), own.dom.parentElement?.focus(), false) },
      ...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...foldKeymap, ...lintKeymap, ...defaultKeymap, indentWithTab,
    ]),
    isSmall ? EditorView.lineWrapping : [],
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((one) => one.annotation(FROM_OUTSIDE))) told.current.onChange(update.state.doc.toString())
      if (update.selectionSet) told.current.onCursor?.(update.state.selection.main.head)
    }),
  ]
}
