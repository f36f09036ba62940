// Error texts as one sentence: what failed, its last cause and the remedy. The chain between them is for experts.

/** Separator of the parts of an error chain; those of URLs and times have no blank. */
const SEPARATOR = /: (?=\S)/;
/** How remedies begin. */
const REMEDY = /^(add|ask|attach|change|check|choose|connect|copy|correct|create|delete|enable|free|give|install|leave|make|mirror|name|publish|remove|replace|restart|run|see|send|set|start|try|upload|use|wait)\b(?!:)/i;
/** A place, as of a file, a member or a service, not a statement. */
const PLACE = /^\S+$/;
const WORD = /^[\w.[\]-]+$/;
const ADDRESS = /^https?:\/\//;
/** The reason of a change of state in an event, in parentheses. */
const REASON_OF_EVENT = / \([^()]*(?:\([^()]*\)[^()]*)*: .*\)$/;
/** Names of members and files, and addresses, which keep their letters. */
const NAME = /^(?:[\w.[\]/-]*[_.[/]\w|\w+:\/\/)/;

export const capitalized = (text: string) => (NAME.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));
const shortened = (text: string) => text.replaceAll(/\b(sha(?:256|384|512):[0-9a-f]{12})[0-9a-f]{20,}/g, "$1…").replaceAll(/ \(os error \d+\)/g, "");

/** The statements of a chain: the first, the last and the remedy. */
function summary(chain: string): string {
  const parts = chain.split(SEPARATOR);
  const begin = parts.findIndex((part) => !PLACE.test(part));
  if (begin < 0) return chain;
  const places = parts.slice(0, begin).filter((part) => !ADDRESS.test(part));
  // A name belongs to the statement about it.
  const statements = parts.slice(begin).reduce<string[]>((list, part) => {
    const before = list.at(-1);
    return before !== undefined && WORD.test(before.split(SEPARATOR).at(-1) ?? "") ? [...list.slice(0, -1), `${before}: ${part}`] : [...list, part];
  }, []);
  const remedy = statements.length > 1 && REMEDY.test(statements.at(-1) ?? "") ? statements.pop() : undefined;
  const kept = statements.length > 2 ? [statements[0], statements.at(-1)] : statements;
  return [...places, ...kept, remedy].filter((part) => part !== undefined).join(": ");
}

/** The sentence for a text of the service. It is the text itself where that has no chain. */
export function sentenceOf(text: string): string {
  const whole = text.trim();
  const [line = ""] = whole.split(/\r?\n/, 1);
  // Of several findings, the first; of an event, what happened without its reason.
  const [first = ""] = line.replace(REASON_OF_EVENT, "").split(" ; ", 1);
  const sentence = summary(first.replace(/:$/, ""));
  return capitalized(sentence === whole ? whole : shortened(sentence));
}

/** Whether the sentence leaves out a part of the text. */
export function hasDetails(text: string): boolean {
  return sentenceOf(text) !== capitalized(text.trim());
}
