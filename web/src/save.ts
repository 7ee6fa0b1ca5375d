/* save.ts - hand a file to the browser. */
export function save(name: string, type: string, content: string | Blob) {
  const link = window.document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
