/* editor.ts - the PromQL editor, loaded after the shell: highlighting, completion, and errors where
 * they are. It lives in a shadow root, where its styles need no exception of the content policy. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, insertNewline } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, placeholder, tooltips, type Tooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { PromQLExtension } from "@prometheus-io/codemirror-promql";
import { aggregateOpTerms, functionIdentifierTerms } from "@prometheus-io/codemirror-promql/dist/esm/complete/promql.terms.js";
import { request } from "./api";

export interface Editor {
  focus: () => void;
  /* Mark the place that an error message names ("1:5: parse error: ..."); null: nothing is wrong. */
  mark: (message: string | null) => void;
  destroy: () => void;
}
export interface EditorEvents {
  run: () => void;
  cancel: () => boolean;
  changed: (text: string) => void;
  recall: (back: boolean) => string | null;
  range: () => { start: number; end: number }; /* what is looked at, in ms */
}

const colors = HighlightStyle.define([
  { tag: tags.name, color: "var(--syntax-name)" },
  { tag: tags.labelName, color: "var(--syntax-label)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--syntax-string)" },
  { tag: [tags.number, tags.literal], color: "var(--syntax-number)" },
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--syntax-keyword)", fontWeight: "bold" },
  { tag: [tags.function(tags.variableName), tags.standard(tags.name)], color: "var(--syntax-function)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", fontSize: "15px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "ui-monospace, monospace", caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "var(--select)" },
  ".cm-placeholder": { color: "var(--ink-soft)" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "ui-monospace, monospace", maxHeight: "16em" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-word": { padding: "4px 8px", maxWidth: "36em", fontSize: "13px" },
  ".cm-completionIcon": { display: "none" },
  ".cm-completionDetail": { color: "inherit", opacity: 0.75, marginLeft: "1em" },
  ".cm-matchingBracket": { backgroundColor: "var(--select)" },
});

function keys(view: () => EditorView, on: EditorEvents) {
  const recall = (back: boolean) => () => {
    const text = on.recall(back);
    if (text !== null) replace(view(), text);
    return true;
  };
  return keymap.of([
    { key: "Enter", run: () => (on.run(), true) },
    { key: "Shift-Enter", run: insertNewline },
    { key: "Escape", run: () => on.cancel() },
    { key: "Ctrl-ArrowUp", run: recall(true) },
    { key: "Ctrl-ArrowDown", run: recall(false) },
  ]);
}

/* What a function or an aggregation does, under the mouse. */
const TERMS = new Map<string, { label: string; detail?: string; info?: unknown }>([...functionIdentifierTerms, ...aggregateOpTerms].map((term) => [term.label, term]));
function explainWord(view: EditorView, pos: number): Tooltip | null {
  const node = syntaxTree(view.state).resolveInner(pos, 1), word = view.state.sliceDoc(node.from, node.to), term = TERMS.get(word);
  if (!term || typeof term.info !== "string" || node.to - node.from > 60) return null;
  const info = term.info;
  return {
    pos: node.from,
    end: node.to,
    above: true,
    create: () => {
      const dom = window.document.createElement("div"), name = window.document.createElement("b");
      dom.className = "cm-word";
      name.textContent = term.label;
      dom.append(name, " " + (term.detail ?? "") + ": " + info);
      return { dom };
    },
  };
}

function replace(view: EditorView, text: string) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
}

/* The API's place is a line and a column of bytes. */
function place(view: EditorView, message: string): { from: number; to: number } {
  const found = /(\d+):(\d+): /.exec(message), length = view.state.doc.length;
  if (!found || +found[1] > view.state.doc.lines) return { from: 0, to: length };
  const line = view.state.doc.line(+found[1]);
  const before = new TextDecoder().decode(new TextEncoder().encode(line.text).slice(0, Math.max(0, +found[2] - 1)));
  const from = Math.min(line.from + before.length, length);
  return from < length ? { from, to: Math.min(from + 1, length) } : { from: Math.max(0, length - 1), to: length };
}

/* Names and values come from the time that is looked at, not from the last hours; and without a scan, where
 * the API knows them. */
function visible(address: string, range: { start: number; end: number }): string {
  const url = new URL(address, location.origin);
  url.searchParams.set("scan", "0");
  if (url.searchParams.has("start")) url.searchParams.set("start", String(range.start / 1000));
  if (url.searchParams.has("end")) url.searchParams.set("end", String(range.end / 1000));
  return url.pathname + url.search;
}

export function create(host: HTMLElement, text: string, label: string, on: EditorEvents): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const promql = new PromQLExtension().activateLinter(false).setComplete({
    remote: { url: "", httpMethod: "GET", fetchFn: (input, init) => request(visible(String(input), on.range()), init) },
  });
  let view: EditorView;
  const state = EditorState.create({
    doc: text,
    selection: { anchor: text.length },
    extensions: [
      /* Completion takes Enter and Escape first, while its list is open. */
      Prec.highest(keymap.of(completionKeymap)),
      Prec.high(keys(() => view, on)),
      keymap.of([...closeBracketsKeymap, ...historyKeymap, ...defaultKeymap]),
      history(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ defaultKeymap: false }),
      tooltips({ position: "absolute" }),
      hoverTooltip(explainWord, { hoverTime: 250 }),
      syntaxHighlighting(colors),
      promql.asExtension(),
      placeholder("PromQL: start typing for metrics and functions; Enter runs it"),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label }),
      EditorView.updateListener.of((update) => update.docChanged && on.changed(update.state.doc.toString())),
      theme,
    ],
  });
  view = new EditorView({ state, root });
  root.append(view.dom);
  return {
    focus: () => view.focus(),
    mark: (message) =>
      view.dispatch(setDiagnostics(view.state, message === null ? [] : [{ ...place(view, message), severity: "error", message }])),
    destroy: () => {
      view.destroy();
      root.replaceChildren();
    },
  };
}
