import { useState, type FormEvent } from "react";

import { takeToken } from "../api/client";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { isDirty } from "../draft/diff";
import { useDraft } from "../store/draft";
import { keepToken, useSession } from "../store/session";

/** Shown if the server does not take the page's token, or does not answer. */
export function TokenForm({ onReady }: { onReady: () => void }) {
  const { phase, problem } = useSession();
  const kept = useDraft((state) => isDirty(state.diff));
  const [token, setToken] = useState("");
  const [tried, setTried] = useState(() => takeToken());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (phase === "token") {
      keepToken(token);
      setTried(token);
      setToken("");
    }
    onReady();
  };
  const unknown = problem?.status === 401 ? "The server does not know this token. It may have been made anew when the server started." : problem?.detail;
  const refusal = tried && !token ? unknown : null;
  return (
    <main className="gate">
      <form className="gate-card" onSubmit={submit}>
        <h1>auroral studio</h1>
        {phase === "token" ? (
          <>
            <p className="muted">
              The server asks for a token. <code>auroral serve</code> prints a link that contains it.{kept && " Your draft is kept."}
            </p>
            <Field label="Token" problem={refusal}>
              {(id, described) => (
                <input id={id} aria-describedby={described} type="password" autoComplete="off" autoFocus value={token} onChange={(event) => setToken(event.target.value)} data-testid="token" />
              )}
            </Field>
            <Button look="primary" type="submit" disabled={!token.trim()}>
              Open the studio
            </Button>
          </>
        ) : (
          <>
            <p className="notice bad" role="alert">
              {problem?.detail ?? "The server does not answer."}
            </p>
            <Button look="primary" type="submit">
              Try again
            </Button>
          </>
        )}
      </form>
    </main>
  );
}
