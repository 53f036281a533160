import { useRef, type KeyboardEvent, type PointerEvent } from "react";

const STEP = 24;
const LEAST = 96;

type Props = { height: number | null; onChange: (height: number) => void };

/** The upper edge of the bottom panel: drag it, or press the arrow keys, for more or less room. */
export function Grip({ height, onChange }: Props) {
  const drag = useRef<{ y: number; height: number } | null>(null);
  const now = () => document.querySelector<HTMLElement>(".bottom-body")?.offsetHeight ?? 232;
  const set = (wanted: number) => onChange(Math.round(Math.min(Math.max(wanted, LEAST), window.innerHeight * 0.7)));
  const press = (event: PointerEvent<HTMLDivElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { y: event.clientY, height: now() };
  };
  const key = (event: KeyboardEvent) => {
    const by = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    set(now() + by);
  };
  return (
    <div
      className="bottom-grip"
      role="separator"
      aria-orientation="horizontal"
      aria-label="Height of the bottom panel"
      aria-valuenow={height ?? undefined}
      aria-valuemin={LEAST}
      tabIndex={0}
      onPointerDown={press}
      onPointerMove={(event) => drag.current && set(drag.current.height + drag.current.y - event.clientY)}
      onPointerUp={() => (drag.current = null)}
      onPointerCancel={() => (drag.current = null)}
      onKeyDown={key}
      data-testid="bottom-grip"
    />
  );
}
