import { useEffect, useRef, type ReactNode } from "react";

import { Button } from "./Button";

type Props = { title: string; onClose: () => void; children: ReactNode; wide?: boolean };

/** A modal dialog: Escape closes it, the focus stays inside and returns to where it was. */
export function Dialog({ title, onClose, children, wide }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) {
      dialog.showModal();
      // Else the browser focuses the first button, which closes the dialog.
      dialog.querySelector<HTMLElement>("input, textarea, select, .button.primary:not(:disabled)")?.focus();
    }
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog ${wide ? "wide" : ""}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2>{title}</h2>
        <Button look="quiet" icon="close" aria-label="Close" onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}
