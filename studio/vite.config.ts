import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The build is served by `auroral serve` from its own origin, and lies in the Python wheel.
export default defineConfig({
  plugins: [react()],
  base: "./",
  build: { outDir: "../src/auroral/server/static", emptyOutDir: true, chunkSizeWarningLimit: 3000 },
  server: { proxy: { "/api": { target: "http://127.0.0.1:8640", ws: true } } },
  test: { environment: "jsdom" },
});
