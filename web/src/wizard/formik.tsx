// Formik of the library's forms, with drafts: the build resolves their `formik` to this module, and marks each form.

import { Formik as Original, type FormikConfig, type FormikHelpers, type FormikProps, type FormikValues, useFormikContext } from "formik";
import { Fragment, type MutableRefObject, type ReactNode, createContext, useContext, useEffect, useLayoutEffect, useRef, useState } from "react";
import { DraftHint, DraftNotice } from "../drafts/draft";
import { changesOf, draftOver, dropDraft, keepDraft, mayHoldSecrets } from "../drafts/store";
import { watchSaving } from "./saving";

export * from "formik";

/** What the build knows about a form. */
export interface FormMark {
  /** Name of its module. */
  form: string;
  /** Distinguishes forms of one module. */
  part?: string;
  /** Saves each change by itself. */
  savesItself?: boolean;
  /** Has a step of the wizard inside, which shows the notice. */
  hasStep?: boolean;
}

type Props<Values> = FormikConfig<Values> & { mark?: FormMark };

export function Formik<Values extends FormikValues>({ mark, ...props }: Props<Values>) {
  return mark ? <FormWithDraft {...props} mark={mark} /> : <Original {...props} />;
}

/** Acts of a person; other changes of values are those of the form itself. */
const ACTS = ["pointerdown", "input", "paste", "drop"];
/** Acts that close a dialog. */
const CLOSING = ["click", "keydown"];

function FormWithDraft<Values extends FormikValues>({ mark, children, onSubmit, ...props }: FormikConfig<Values> & { mark: FormMark }) {
  const { initialValues } = props;
  const [key] = useState(() => [mark.form, mark.part, location.pathname, initialValues.hostId].filter((part) => part !== undefined).join(" "));
  const [restored] = useState(() => draftOver(key, initialValues));
  const [stage, setStage] = useState<"restoring" | "restored" | "saved" | "none">(restored ? "restoring" : "none");
  const [round, setRound] = useState(0);
  const state = useRef<KeptState>({ values: restored ?? initialValues, saved: initialValues, isByPerson: restored !== undefined });

  const submit = (values: Values, helpers: FormikHelpers<Values>) => {
    const isSaved = watchSaving();
    const result = onSubmit(values, helpers);
    const settle = async () => {
      await result;
      if (!(await isSaved())) return;
      state.current.saved = values;
      keepDraft(key, changesOf(state.current.values, values));
      setStage((before) => (before === "restored" ? "saved" : before));
    };
    // Failures are those of the form.
    settle().catch(() => {});
    return result;
  };
  const content = (form: FormikProps<Values>) => {
    if (stage === "restoring") return <Restore values={restored ?? initialValues} done={() => setStage("restored")} />;
    const discard = () => {
      // As at the beginning: what the form sets itself now is no draft.
      state.current.isByPerson = false;
      form.resetForm();
      dropDraft(key);
      setStage("none");
      // Parts of the form have states of their own.
      setRound(round + 1);
    };
    const about = (
      <>
        {stage !== "none" && <DraftNotice discard={stage === "saved" ? undefined : discard} />}
        {stage === "none" && mayHoldSecrets(initialValues) && <DraftHint />}
      </>
    );
    return (
      <About.Provider value={about}>
        <Keep form={key} state={state} />
        {!mark.hasStep && about}
        <Fragment key={round}>
          {restored !== undefined && <Settle savesItself={mark.savesItself ?? false} />}
          {typeof children === "function" ? children(form) : children}
        </Fragment>
      </About.Provider>
    );
  };
  return <Original {...props} onSubmit={submit}>{content}</Original>;
}

const About = createContext<ReactNode>(null);

/** The notice of the form around a step of the wizard. */
export function StepNotice() {
  return <>{useContext(About)}</>;
}

/** Sets the values of the draft before the fields are drawn: some of them look at their values only then. */
function Restore<Values extends FormikValues>({ values, done }: { values: Values; done: () => void }) {
  const { setValues } = useFormikContext<Values>();
  useLayoutEffect(() => {
    void setValues(values, false);
    done();
  }, []);
  return null;
}

/** Restored values are checked; forms that save each change save them. */
function Settle({ savesItself }: { savesItself: boolean }) {
  const { submitForm, validateForm } = useFormikContext();
  useEffect(() => {
    // After Formik's own check at the beginning, which is one of the saved values.
    const timer = setTimeout(() => void (savesItself ? submitForm() : validateForm()));
    return () => clearTimeout(timer);
  }, []);
  return null;
}

interface KeptState {
  values: FormikValues;
  saved: FormikValues;
  isByPerson: boolean;
}

function Keep({ form, state }: { form: string; state: MutableRefObject<KeptState> }) {
  const { values, initialValues } = useFormikContext<FormikValues>();
  const place = useRef<HTMLSpanElement>(null);
  const initial = useRef(initialValues);
  const isClosing = useRef(false);
  useEffect(() => {
    const note = ({ type }: Event) => {
      state.current.isByPerson = true;
      if (!CLOSING.includes(type)) return;
      isClosing.current = true;
      // React draws what follows from an event before the next task.
      setTimeout(() => {
        isClosing.current = false;
      });
    };
    for (const act of [...ACTS, ...CLOSING]) document.addEventListener(act, note, true);
    return () => {
      for (const act of [...ACTS, ...CLOSING]) document.removeEventListener(act, note, true);
    };
  }, []);
  useEffect(() => {
    const isReset = initial.current !== initialValues;
    initial.current = initialValues;
    state.current.values = values;
    if (isReset) state.current.saved = initialValues;
    if (state.current.isByPerson) keepDraft(form, changesOf(values, state.current.saved));
    else state.current.saved = values;
  }, [values, initialValues]);
  useLayoutEffect(() => {
    const dialog = place.current?.closest("[role=dialog]");
    return () => {
      // Closing a dialog by hand discards its values; a failure that closes it does not, nor does the next step in it.
      if (dialog && isClosing.current) queueMicrotask(() => dialog.isConnected || dropDraft(form));
    };
  }, []);
  return <span ref={place} hidden />;
}
