// Light and dark: by the viewer's choice, else as the system.

const CHOICE = "atoll-theme";
const DARK_CLASS = "pf-v6-theme-dark";

export type Theme = "system" | "light" | "dark";
const system = matchMedia("(prefers-color-scheme: dark)");

export function theme(): Theme {
  const chosen = localStorage.getItem(CHOICE);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

function apply(): void {
  const chosen = theme();
  const isDark = chosen === "dark" || (chosen === "system" && system.matches);
  document.documentElement.classList.toggle(DARK_CLASS, isDark);
}

/** Paper is light. */
function applyPaper(): void {
  document.documentElement.classList.remove(DARK_CLASS);
}

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(CHOICE, chosen);
  apply();
}

/** Applies the theme, now, when the system changes, and around printing. */
export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
  addEventListener("beforeprint", applyPaper);
  addEventListener("afterprint", apply);
}
