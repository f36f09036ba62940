// The step that the wizard shows: links to it would lead nowhere.

import { createContext } from "react";

export const CurrentStep = createContext<string | undefined>(undefined);
