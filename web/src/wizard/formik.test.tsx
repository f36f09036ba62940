import { cleanup, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import axios, { type AxiosAdapter } from "axios";
import { useEffect, useState } from "react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type FormMark, Field, Formik, useFormikContext } from "./formik";
import { watchChanges } from "./saving";

let status: number;
const client = axios.create();
client.defaults.adapter = (async (config) => {
  if (status >= 400) throw Object.assign(new Error(String(status)), { config });
  return { data: {}, status, statusText: "", headers: {}, config };
}) as AxiosAdapter;
watchChanges(client);

beforeEach(() => {
  status = 200;
  sessionStorage.clear();
});
afterEach(cleanup);

const SAVED = { name: "", pullSecret: "" };

/** Handlers of the library catch the failures of their requests. */
const save = () => client.patch("/").then(() => {}, () => {});

interface Props {
  mark?: Partial<FormMark>;
  saved?: typeof SAVED;
  children?: React.ReactNode;
}

const Subject = ({ mark, saved = SAVED, children }: Props) => (
  <Formik initialValues={saved} onSubmit={save} mark={{ form: "a", ...mark }}>
    {({ dirty, handleSubmit }) => (
      <form onSubmit={handleSubmit}>
        <Field name="name" aria-label="Name" />
        <Field name="pullSecret" aria-label="Secret" />
        <button type="submit" disabled={!dirty}>Save</button>
        {children}
      </form>
    )}
  </Formik>
);
const field = (label = "Name") => screen.getByRole<HTMLInputElement>("textbox", { name: label });
const notice = () => screen.queryByText("Restored from this browser tab");
/** As after a reload. */
const again = (ui: React.ReactElement) => {
  cleanup();
  return render(ui);
};

test("typed values are back as unsaved ones after a reload, secrets are not", async () => {
  render(<Subject />);
  expect(screen.queryByText(/without pull secrets/)).not.toBeNull();
  await userEvent.type(field(), "x");
  await userEvent.type(field("Secret"), "y");
  again(<Subject />);
  expect(field().value).toBe("x");
  expect(field("Secret").value).toBe("");
  expect(screen.getByRole("button", { name: "Save" }).hasAttribute("disabled")).toBe(false);
  expect(notice()).not.toBeNull();
});

test("discarded values do not come back", async () => {
  render(<Subject />);
  await userEvent.type(field(), "x");
  again(<Subject />);
  await userEvent.click(screen.getByRole("button", { name: "Discard" }));
  expect(field().value).toBe("");
  expect(notice()).toBeNull();
  again(<Subject />);
  expect(notice()).toBeNull();
});

test("saved values are no draft", async () => {
  render(<Subject />);
  await userEvent.type(field(), "x");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(sessionStorage).toHaveLength(0));
});

test("values whose request fails stay a draft", async () => {
  status = 503;
  render(<Subject />);
  await userEvent.type(field(), "x");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await new Promise((proceed) => setTimeout(proceed, 50));
  again(<Subject />);
  expect(field().value).toBe("x");
});

test("a form that saves each change saves restored values", async () => {
  status = 503;
  render(<Subject mark={{ savesItself: true }} />);
  await userEvent.type(field(), "x");
  status = 200;
  again(<Subject mark={{ savesItself: true }} />);
  await screen.findByText(/These values are saved now/);
  expect(field().value).toBe("x");
  expect(screen.queryByRole("button", { name: "Discard" })).toBeNull();
  expect(sessionStorage).toHaveLength(0);
});

test("values that the form sets itself are no draft", async () => {
  const Setter = () => {
    const { setFieldValue } = useFormikContext();
    useEffect(() => void setFieldValue("name", "by the form"), []);
    return null;
  };
  render(<Subject><Setter /></Subject>);
  await waitFor(() => expect(field().value).toBe("by the form"));
  expect(sessionStorage).toHaveLength(0);
  await userEvent.type(field("Secret"), "y");
  again(<Subject />);
  expect(field().value).toBe("");
});

test("a dialog that is closed by hand has no draft", async () => {
  const Dialog = ({ byHand }: { byHand: boolean }) => {
    const [isOpen, setOpen] = useState(true);
    const close = () => void (byHand ? setOpen(false) : setTimeout(() => setOpen(false)));
    return isOpen ? <div role="dialog"><Subject><button type="button" onClick={close}>Cancel</button></Subject></div> : <p>closed</p>;
  };
  for (const byHand of [false, true]) {
    again(<Dialog byHand={byHand} />);
    if (byHand) expect(field().value).toBe("x");
    else await userEvent.type(field(), "x");
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    await screen.findByText("closed");
    expect(sessionStorage).toHaveLength(byHand ? 0 : 1);
  }
});
