import "@patternfly/react-core/dist/styles/base.css";
import "./style.css";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { startTexts } from "./i18n";
import { startTheme } from "./theme";

startTheme();
await startTexts();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
