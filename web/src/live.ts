/* live.ts - the one place from which screen readers are told things, politely. */
let region: HTMLElement | null = null;

export function setRegion(element: HTMLElement | null) {
  region = element;
}
export function say(text: string) {
  if (region && region.textContent !== text) region.textContent = text;
}
