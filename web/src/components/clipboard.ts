/** Copies a text. Browsers have the clipboard's API by HTTPS alone; many sites are served by HTTP. */
export function copy(text: string): void {
  if (navigator.clipboard) {
    void navigator.clipboard.writeText(text);
    return;
  }
  const fill = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", fill);
  document.execCommand("copy");
  document.removeEventListener("copy", fill);
}
