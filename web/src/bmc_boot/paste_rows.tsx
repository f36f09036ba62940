// Many BMCs at once: lines of a spreadsheet or a CSV file. The text may hold passwords: it is kept in the page alone.

import { Button, ExpandableSection, FormGroup, FormHelperText, HelperText, HelperTextItem, List, ListItem, TextArea } from "@patternfly/react-core";
import { useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type LineProblem, parsePasted } from "./pasted";
import { type BmcTarget, MAX_BMCS } from "./records";

/** Problems of lines that are shown. */
const SHOWN = 10;

interface Props {
  /** Rows that the form has. */
  count: number;
  add: (rows: BmcTarget[]) => void;
}

export function PasteRows({ count, add }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const { rows, problems, rest } = useMemo(() => parsePasted(text, Math.max(0, MAX_BMCS - count)), [text, count]);
  const take = () => {
    add(rows);
    // Lines with problems stay, for correction.
    setText(rest);
    if (rest === "") setOpen(false);
  };
  return (
    <ExpandableSection toggleText={t("Paste many")} isExpanded={isOpen} onToggle={(_, isExpanded) => setOpen(isExpanded)}>
      <FormGroup label={t("Lines: name,address,user,password")} fieldId={id}>
        <TextArea id={id} value={text} rows={6} resizeOrientation="vertical" autoComplete="off" spellCheck={false} className="atoll-mono" aria-describedby={`${id}-help`}
          {...(problems.length > 0 && { validated: "error" as const })} onChange={(_, typed) => setText(typed)} />
        <FormHelperText>
          <HelperText id={`${id}-help`} isLiveRegion>
            <HelperTextItem>{t("With commas or tabs, with or without a heading. Quote values that have commas, quotes or outer blanks. The browser does not store these lines.")}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      </FormGroup>
      <Problems problems={problems} />
      <Button variant="secondary" className="atoll-row" isDisabled={rows.length === 0} onClick={take}>{t("Add rows: {{count}}", { count: rows.length })}</Button>
    </ExpandableSection>
  );
}

function Problems({ problems }: { problems: LineProblem[] }) {
  const { t } = useTranslation();
  if (problems.length === 0) return null;
  return (
    <div role="status">
      <List isPlain>
        {problems.slice(0, SHOWN).map(({ line, problem, values }) => <ListItem key={line}>{t("Line {{line}}", { line })}: {t(problem, values)}</ListItem>)}
      </List>
      {problems.length > SHOWN && <p>{t("{{count}} more are not shown", { count: problems.length - SHOWN })}</p>}
    </div>
  );
}
