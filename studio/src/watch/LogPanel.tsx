import { useState } from "react";

import { useLive } from "../store/live";
import { count, timeOfDay } from "./format";
import { ProblemNote } from "./ProblemNote";

const LEVELS = ["debug", "info", "warning", "error"];
const SHOWN = 500;

/** Lines of the server's log, newest first. */
export function LogPanel() {
  const [least, setLeast] = useState("info");
  const [text, setText] = useState("");
  const log = useLive((state) => state.log);
  const dropped = useLive((state) => state.logDropped);
  const problem = useLive((state) => state.problem);
  const rank = LEVELS.indexOf(least);
  const shown = log
    .filter((entry) => LEVELS.indexOf(entry.level.toLowerCase()) >= rank || !LEVELS.includes(entry.level.toLowerCase()))
    .filter((entry) => entry.text.toLowerCase().includes(text.toLowerCase()))
    .slice(-SHOWN)
    .reverse();
  return (
    <section className="panel" aria-label="Log">
      <div className="panel-bar">
        <label>
          From level{" "}
          <select value={least} onChange={(event) => setLeast(event.target.value)}>
            {LEVELS.map((level) => (
              <option key={level}>{level}</option>
            ))}
          </select>
        </label>
        <input
          className="grow"
          aria-label="Find in the log"
          placeholder="find"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {dropped > 0 && <span className="quiet">{count(dropped)} older lines dropped</span>}
      </div>
      <ProblemNote problem={problem} />
      <ol className="log-list mono">
        {shown.map((entry, at) => (
          <li key={`${entry.at_us}-${at}`} className={`log-${entry.level.toLowerCase()}`}>
            <time>{timeOfDay(entry.at_us)}</time> <span className="log-level">{entry.level}</span> {entry.text}
          </li>
        ))}
      </ol>
      {shown.length === 0 && <p className="quiet pad">No log line yet.</p>}
    </section>
  );
}
