// Light, dark, or as the system has it.

import { effect, signal } from "./html.js";

const KEY = "tandemq-theme";
const CHOICES = ["system", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

const known = localStorage.getItem(KEY);
export const theme = signal(CHOICES.includes(known) ? known : "system");
export const dark = signal(false); // what it comes to

const settle = () => {
  dark.value = theme.value === "dark" || (theme.value === "system" && system.matches);
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
};
effect(settle);
system.addEventListener("change", settle);

export function nextTheme() {
  theme.value = CHOICES[(CHOICES.indexOf(theme.value) + 1) % CHOICES.length];
  localStorage.setItem(KEY, theme.value);
}
