import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { bytes, gigabytes, localTime, locale, span, words } from "./format";

const speak = (lang: string) => (document.documentElement.lang = lang);

beforeEach(() => void vi.useFakeTimers({ now: new Date("2026-03-04T12:00:00Z") }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  speak("");
});

test("identifiers are words", () => {
  expect(words("pending-for-input")).toBe("Pending for input");
  expect(words("not_started")).toBe("Not started");
  expect(words(undefined)).toBe("");
});

test("the country is the browser's, the language the chosen one", () => {
  vi.stubGlobal("navigator", { languages: ["de-CH", "es-MX"] });
  expect(locale()).toBeUndefined();
  expect(speak("es") && locale()).toBe("es-MX");
  expect(speak("fr") && locale()).toBe("fr");
});

test.each([
  ["en", "1 hr 5 min", "4 days"],
  ["es", "1 h 5 min", "4 d"],
  ["fr", "1 h 5 min", "4 j"],
  ["ja", "1 時間 5 分", "4 日"],
  ["ko", "1시간 5분", "4일"],
  ["zh", "1小时 5分钟", "4天"],
])("lengths of time in %s", (lang, hours, days) => {
  speak(lang);
  const plain = (text: string) => text.replaceAll(/\s/g, " ");
  expect(plain(span(65 * 60_000))).toBe(hours);
  expect(plain(span(99 * 3_600_000))).toBe(days);
});

test("numbers and dates are written as in the language", () => {
  speak("fr");
  expect(bytes(1.5 * 1024 ** 3)).toBe("1,5 GiB");
  expect(localTime("2026-01-02T12:00:00Z")).toMatch(/janv/);
  speak("en");
  expect(bytes(1.5 * 1024 ** 3)).toBe("1.5 GiB");
  expect(localTime("2026-01-02T12:00:00Z")).toMatch(/Jan/);
  expect(localTime("0001-01-01T00:00:00Z")).toBe("–");
  expect(gigabytes(500_107_862_016)).toBe("500 GB");
  expect(bytes(0)).toBe("–");
});
