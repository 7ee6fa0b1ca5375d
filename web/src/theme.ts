/* theme.ts - light or dark: what was chosen, or what the system likes. */
export type Theme = "system" | "light" | "dark";

const KEY = "promfabric.theme";

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}
export function keepTheme(theme: Theme) {
  localStorage.setItem(KEY, theme);
}
export function systemDark(): boolean {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}
export function themeNow(): "light" | "dark" {
  const theme = chosenTheme();
  return theme === "system" ? (systemDark() ? "dark" : "light") : theme;
}
