// Texts: ours are their own keys in English; other languages have a file each, to which the library's texts are added
// when its pages are opened.

import i18n from "i18next";
import { initReactI18next } from "react-i18next";

/** Languages of the library, by their own names. */
export const LANGUAGES = { en: "English", es: "Español", fr: "Français", ja: "日本語", ko: "한국어", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES;

const CHOICE = "atoll-language";

type Texts = Record<string, string>;
const OURS = import.meta.glob<{ default: Texts }>("./locales/*.json");
const LIBRARY: Record<Language, () => Promise<{ default: Texts }>> = {
  en: () => import("@openshift-assisted/locales/en/translation.json"),
  es: () => import("@openshift-assisted/locales/es/translation.json"),
  fr: () => import("@openshift-assisted/locales/fr/translation.json"),
  ja: () => import("@openshift-assisted/locales/ja/translation.json"),
  ko: () => import("@openshift-assisted/locales/ko/translation.json"),
  zh: () => import("@openshift-assisted/locales/zh/translation.json"),
};

function isLanguage(text: string | null | undefined): text is Language {
  return text != null && text in LANGUAGES;
}

/** The chosen language, else the first of the browser that there is. */
export function language(): Language {
  const chosen = localStorage.getItem(CHOICE);
  if (isLanguage(chosen)) return chosen;
  return navigator.languages.map((one) => one.split("-")[0]).find(isLanguage) ?? "en";
}

/** Chooses a language; pages are drawn anew. */
export function chooseLanguage(chosen: Language): void {
  localStorage.setItem(CHOICE, chosen);
  location.reload();
}

/** Loads our texts of the chosen language. */
export async function startTexts(): Promise<void> {
  const lng = language();
  const ours = await OURS[`./locales/${lng}.json`]?.();
  await i18n.use(initReactI18next).init({
    lng,
    fallbackLng: "en",
    resources: { [lng]: { translation: ours?.default ?? {} } },
    keySeparator: false,
    // Reasons of the service are looked up, too: no character of them is a separator.
    nsSeparator: false,
    interpolation: { escapeValue: false, format: formatValue },
    react: { transSupportBasicHtmlNodes: true },
  });
  document.documentElement.lang = lng;
  document.documentElement.dir = i18n.dir(lng);
}

/** Adds the texts of the library's pages. */
export async function addLibraryTexts(): Promise<void> {
  const lng = language();
  const texts = await LIBRARY[lng]();
  i18n.addResourceBundle(lng, "translation", texts.default, true, false);
}

function formatValue(value: unknown, format: string | undefined, lng: string | undefined): string {
  if (format === "number" && typeof value === "number") return new Intl.NumberFormat(lng).format(value);
  if (value instanceof Date) return new Intl.DateTimeFormat(lng, { dateStyle: "medium", timeStyle: "short" }).format(value);
  return String(value);
}
