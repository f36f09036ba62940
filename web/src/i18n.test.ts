import i18n from "i18next";
import { beforeAll, expect, test } from "vitest";
import { addLibraryTexts, startTexts } from "./i18n";

beforeAll(async () => {
  localStorage.setItem("atoll-language", "es");
  await startTexts();
});

test("the page is in the chosen language", () => {
  expect(document.documentElement.lang).toBe("es");
  expect(document.documentElement.dir).toBe("ltr");
  expect(i18n.t("Clusters")).toBe("Clústeres");
});

test("a text with a count has one form", () => {
  expect([1, 2].map((count) => i18n.t("{{count}} images", { count }))).toEqual(["Imágenes: 1", "Imágenes: 2"]);
});

test("a reason of the service stays whole", () => {
  const reason = "Host a.b: disk /dev/sda is full: ~5 % left.";
  expect(i18n.t(reason)).toBe(reason);
});

test("texts of the library are added to ours", async () => {
  await addLibraryTexts();
  expect(i18n.t("ai:Pull secret")).toBe(i18n.t("Pull secret"));
  expect(i18n.t("Clusters")).toBe("Clústeres");
});
