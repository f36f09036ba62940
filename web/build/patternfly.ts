// PatternFly's own labels, which are in English only: they become texts of the page, in all languages. Also a few names
// and roles that its components leave to their callers, which the library does not give.

import type { Plugin } from "vite";

interface Labels {
  /** Path of the module in its package. */
  file: string;
  /** Literals that are labels, and the texts of ours in their places. */
  texts?: Record<string, string>;
  changes?: [before: string, after: string][];
}

const CORE = "react-core/dist/esm/components";
const TABLE = "react-table/dist/esm/components/Table";

/** Names of variants; the messages of some components begin with them. */
export const VARIANTS = { success: "Success", danger: "Error", error: "Error", warning: "Warning", info: "Info", indeterminate: "Info", custom: "Info" };
const variantText = (variant: string) => `ourTexts.t(${JSON.stringify(VARIANTS)}[${variant}])`;

/** For version 6.2.2; a test finds those that no longer apply. */
export const LABELS: Labels[] = [
  { file: `${CORE}/Alert/Alert.js`, changes: [["`${capitalize(variant)} alert:`", `${variantText("variant")} + ": "`]] },
  { file: `${CORE}/Alert/AlertActionCloseButton.js`, changes: [["`Close ${variantLabel || alertVariantLabel} alert: ${title}`", 'ourTexts.t("Close")']] },
  { file: `${CORE}/Alert/AlertToggleExpandButton.js`, changes: [["`Toggle ${variantLabel || alertVariantLabel} alert: ${title}`", 'ourTexts.t("Details")']] },
  { file: `${CORE}/Breadcrumb/Breadcrumb.js`, texts: { Breadcrumb: "Path" } },
  { file: `${CORE}/ClipboardCopy/ClipboardCopy.js`, texts: { "Copy to clipboard": "Copy", "Successfully copied to clipboard!": "Copied", "Copyable input": "Text to copy", "Show content": "Details" } },
  { file: `${CORE}/ClipboardCopy/ClipboardCopyButton.js`, texts: { "Copyable input": "Copy" } },
  { file: `${CORE}/Dropdown/Dropdown.js`, changes: [
    // Items need the role of a menu around them.
    ["maxMenuHeight: maxMenuHeight, children: children }", "maxMenuHeight: maxMenuHeight, children: menuItems(children) }"],
    ["import { Menu, MenuContent } from", 'import { menuItems } from "atoll-wizard/menu_items";\nimport { Menu, MenuContent } from'],
  ] },
  { file: `${CORE}/FileUpload/FileUploadField.js`,
    texts: { "File upload": "Content of the file", "Drag a file here or browse to upload": "Drag a file here, or choose one", "Browse...": "Choose a file", Clear: "Clear" },
    changes: [["filename ? 'Read only filename'", 'filename ? ourTexts.t("Name of the file")']] },
  { file: `${CORE}/HelperText/HelperTextItem.js`, changes: [["`${variant} status`", variantText("variant")]] },
  { file: `${CORE}/Label/Label.js`, changes: [["`Close ${children}`", 'ourTexts.t("Remove")']] },
  { file: `${CORE}/Label/LabelGroup.js`, texts: { "Show Less": "Show less", "${remaining} more": "${remaining} more", "Close label group": "Remove", "Label group category": "Labels" } },
  { file: `${CORE}/Modal/Modal.js`, changes: [
    // In an open menu, it closes the menu only: else a dialog is lost with all that was typed into it.
    ["if (event.key === KeyTypes.Escape && this.props.isOpen)", 'if (event.key === KeyTypes.Escape && this.props.isOpen && !event.target.closest(".pf-v6-c-menu, .pf-v6-c-menu-toggle[aria-expanded=true]"))'],
  ] },
  { file: `${CORE}/Modal/ModalBoxCloseButton.js`, texts: { Close: "Close" } },
  { file: `${CORE}/Modal/ModalBoxTitle.js`, changes: [["`${capitalize(titleIconVariant)} alert:`", `${variantText("titleIconVariant")} + ": "`]] },
  { file: `${CORE}/NumberInput/NumberInput.js`, texts: { Input: "Value", Minus: "Decrease", Plus: "Increase" } },
  { file: `${CORE}/Pagination/Pagination.js`, texts: {
    "Items per page": "Rows per page", "per page": "per page", of: "of", "Go to first page": "First page", "Go to previous page": "Previous page",
    "Go to last page": "Last page", "Go to next page": "Next page", "Current page": "Current page", Pagination: "Pages",
  } },
  { file: `${CORE}/Popover/Popover.js`, texts: { Close: "Close" }, changes: [["'aria-label': ariaLabel = ''", "'aria-label': ariaLabel = ourTexts.t(\"Details\")"]] },
  { file: `${CORE}/SearchInput/SearchInput.js`, texts: { "Search input": "Filter", Reset: "Clear", Search: "Search" } },
  { file: `${CORE}/Spinner/Spinner.js`, texts: { "Loading...": "Loading", Contents: "Loading" } },
  { file: `${CORE}/Tabs/Tabs.js`, texts: { "Scroll left": "Scroll back", "Scroll back": "Scroll back", "Scroll right": "Scroll forward", "Scroll forward": "Scroll forward" } },
  { file: `${CORE}/TextInputGroup/TextInputGroupMain.js`, texts: { "Type to filter": "Filter" } },
  { file: `${CORE}/Toolbar/ToolbarExpandableContent.js`, texts: { "Clear all filters": "Clear all filters" } },
  { file: `${CORE}/Toolbar/ToolbarLabelGroupContent.js`, texts: { "Clear all filters": "Clear all filters" } },
  { file: `${CORE}/Toolbar/ToolbarToggleGroup.js`, texts: { "Show Filters": "Filter" } },
  { file: `${CORE}/Wizard/WizardHeader.js`, changes: [["isCloseHidden, closeButtonAriaLabel, titleId", 'isCloseHidden, closeButtonAriaLabel = ourTexts.t("Close"), titleId']] },
  { file: `${TABLE}/ActionsColumn.js`, texts: { "Kebab toggle": "Actions" } },
  { file: `${TABLE}/CollapseColumn.js`, texts: { Details: "Details" } },
  { file: `${TABLE}/utils/decorators/collapsible.js`, texts: { "Expand all rows": "Expand all rows" } },
  { file: `${TABLE}/utils/decorators/selectable.js`, texts: { "Select all rows": "Select all" }, changes: [["`Select row ${rowIndex}`", 'ourTexts.t("Select row {{number}}", { number: rowIndex + 1 })']] },
];

const escaped = (text: string) => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&");

/** The module with labels from the texts of the page; `undefined` for others. Throws when a label is not there. */
export function labelled(path: string, source: string): string | undefined {
  const labels = LABELS.find(({ file }) => path.endsWith(`/${file}`));
  if (!labels) return undefined;
  const missing = (label: string) => new Error(`${labels.file} does not have ${JSON.stringify(label)}: adapt its labels`);
  let result = source;
  for (const [before, after] of labels.changes ?? []) {
    if (!result.includes(before)) throw missing(before);
    result = result.replace(before, () => after);
  }
  for (const [text, ours] of Object.entries(labels.texts ?? {})) {
    const translated = `ourTexts.t(${JSON.stringify(ours)})`;
    const literal = `(['"])${escaped(text)}\\1`;
    const before = result;
    result = result
      // Members are read when they are used: the texts are loaded after the modules.
      .replaceAll(new RegExp(`("[\\w-]+"|'[\\w-]+'|\\b\\w+): ${literal.replace("\\1", "\\2")}`, "g"), (_, name: string) => `get ${name}() { return ${translated}; }`)
      .replaceAll(new RegExp(`(= |\\|\\| )${literal.replace("\\1", "\\2")}`, "g"), (_, operator: string) => `${operator}${translated}`);
    if (result === before) throw missing(text);
  }
  return `import ourTexts from "i18next";\n${result}`;
}

export function patternflyLabels(): Plugin {
  return {
    name: "patternfly-labels",
    transform(code, id) {
      const path = id.split("?")[0] ?? id;
      const result = path.includes("/@patternfly/") ? labelled(path, code) : undefined;
      return result === undefined ? null : { code: result, map: null };
    },
  };
}
