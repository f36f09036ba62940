// The profiles: kinds of installations, one of which is chosen.

import { Radio } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import type { RehearsalProfile } from "./records";

interface Props {
  profiles: RehearsalProfile[];
  chosen: string;
  choose: (name: string) => void;
}

export function ProfileTable({ profiles, chosen, choose }: Props) {
  const { t } = useTranslation();
  const machines = ({ control_plane: controlPlane, arbiters, workers }: RehearsalProfile) => [
    t("control plane: {{count}}", { count: controlPlane }),
    arbiters > 0 && t("arbiters: {{count}}", { count: arbiters }),
    workers > 0 && t("workers: {{count}}", { count: workers }),
  ].filter(Boolean).join(", ");
  return (
    <Table aria-label={t("Profiles")} variant="compact">
      <Thead><Tr><Th>{t("Profile")}</Th><Th>{t("Purpose")}</Th><Th>{t("Machines")}</Th></Tr></Thead>
      <Tbody>
        {profiles.map((profile) => {
          const { name, purpose } = profile;
          return (
            <Tr key={name} isRowSelected={name === chosen}>
              <Td dataLabel={t("Profile")}>
                <Radio id={`profile-${name}`} name="profile" label={name} isChecked={name === chosen} onChange={() => choose(name)} />
              </Td>
              <Td dataLabel={t("Purpose")}>{t(purpose)}</Td>
              <Td dataLabel={t("Machines")}>{machines(profile)}</Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}
