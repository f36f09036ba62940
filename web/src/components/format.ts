// Values as people read them, in the viewer's language and time zone.

import { serviceTime } from "../api/client";

/** `pending-for-input` as `Pending for input`. */
export function words(text: string | undefined): string {
  const plain = (text ?? "").replaceAll(/[-_]/g, " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** The chosen language, as the browser's country writes it: for dates and numbers. */
export function locale(): string | undefined {
  const { lang } = document.documentElement;
  return lang === "" ? undefined : (navigator.languages.find((one) => one.split("-")[0] === lang) ?? lang);
}

// Kept: ages are drawn anew each second, for hundreds of rows, and a format takes longer to make than to use.
const FORMATS = new Map<string, Intl.NumberFormat>();

function number(value: number, unit?: "second" | "minute" | "hour" | "day"): string {
  const language = locale();
  const key = `${language} ${unit}`;
  let format = FORMATS.get(key);
  if (!format) {
    format = new Intl.NumberFormat(language, unit ? { style: "unit", unit, unitDisplay: "short" } : { maximumFractionDigits: 1 });
    FORMATS.set(key, format);
  }
  return format.format(value);
}

/** Bytes in the binary unit that makes them short. */
export function bytes(count: number | undefined): string {
  if (!count) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(Math.floor(Math.log2(count) / 10), units.length - 1);
  const value = count / 1024 ** step;
  return `${number(value >= 100 ? Math.round(value) : value)} ${units[step]}`;
}

/** Sizes of disks as vendors give them. */
export function gigabytes(count: number | undefined): string {
  return count ? `${number(Math.round(count / 1e9))} GB` : "–";
}

/** Milliseconds of a time of the wire; undefined for the zero time. */
export function instant(text: string | undefined): number | undefined {
  return !text || text.startsWith("0001-") ? undefined : Date.parse(text);
}

/** A length of time in its two largest units. Units: milliseconds. */
export function span(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return number(seconds, "second");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${number(minutes, "minute")} ${number(seconds % 60, "second")}`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${number(hours, "hour")} ${number(minutes % 60, "minute")}` : number(Math.floor(hours / 24), "day");
}

/** Time since a time of the wire. */
export function since(text: string | undefined): string {
  const then = instant(text);
  return then === undefined ? "–" : span(serviceTime() - then);
}

/** A time of the wire by the viewer's clock; the date is left out today. */
export function localTime(text: string | undefined): string {
  const then = instant(text);
  if (then === undefined) return "–";
  const date = new Date(then);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString(locale()) : date.toLocaleString(locale(), { dateStyle: "medium", timeStyle: "medium" });
}

// Kept: `localeCompare` with options makes one for each comparison, and a registry has thousands of repositories.
const NAMES = new Intl.Collator(undefined, { numeric: true });

/** Order of names with numbers in them: `node-2` before `node-10`. */
export function byName(one: string, other: string): number {
  return NAMES.compare(one, other);
}
