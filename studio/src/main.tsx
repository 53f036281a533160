import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { takeToken } from "./api/client";
import { App } from "./App";
import { startTheme } from "./shell/theme";

takeToken();
startTheme();
const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
