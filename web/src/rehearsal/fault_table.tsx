// Faults that simulated hosts have: each of named hosts, or of one that the seed chooses.

import { Checkbox, TextInput } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { Draft } from "./draft";
import type { RehearsalFault } from "./records";

interface Props {
  faults: RehearsalFault[];
  chosen: Draft["faults"];
  /** Names that are suggested. */
  hosts: string[];
  change: (chosen: Draft["faults"]) => void;
}

export function FaultTable({ faults, chosen, hosts, change }: Props) {
  const { t } = useTranslation();
  const list = useId();
  const toggled = (name: string, isChosen: boolean) => {
    const { [name]: before, ...others } = chosen;
    change(isChosen ? { ...others, [name]: before ?? "" } : others);
  };
  return (
    <>
      <Table aria-label={t("Faults")} variant="compact">
        <Thead><Tr><Th>{t("Fault")}</Th><Th>{t("When")}</Th><Th>{t("Effect")}</Th><Th>{t("Host")}</Th></Tr></Thead>
        <Tbody>
          {faults.map(({ name, when, effect }) => (
            <Tr key={name}>
              <Td dataLabel={t("Fault")}>
                <Checkbox id={`fault-${name}`} label={name} isChecked={name in chosen} onChange={(_, isChosen) => toggled(name, isChosen)} />
              </Td>
              <Td dataLabel={t("When")}>{t(when)}</Td>
              <Td dataLabel={t("Effect")}>{t(effect)}</Td>
              <Td dataLabel={t("Host")}>
                {name in chosen
                  ? (
                    <TextInput aria-label={t("Hosts with the fault {{name}}", { name })} placeholder={t("one that the seed chooses")} list={list} value={chosen[name]}
                      onChange={(_, typed) => change({ ...chosen, [name]: typed })} />
                  )
                  : "–"}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <datalist id={list}>{hosts.map((host) => <option key={host} value={host} />)}</datalist>
    </>
  );
}
