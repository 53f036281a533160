import { memo, type ReactNode } from "react";

import { useLive } from "../store/live";
import { boxTexts, type BoxTexts } from "./figures";

/** The quiet row of figures on a box's card. */
export const BoxFiguresRow = memo(function BoxFiguresRow({ name }: { name: string }) {
  const texts = useLive((state) => {
    const box = state.picture?.boxes[name];
    return box ? boxTexts(box) : null;
  });
  return texts && <FiguresRow texts={texts} />;
});

export function FiguresRow({ texts }: { texts: BoxTexts }) {
  return (
    <div className="figures" title={texts.title}>
      <span className="figure flow">
        {texts.in}
        <span aria-label="becomes"> → </span>
        {texts.out}
      </span>
      {texts.halted && (
        <span className="figure tone-red" title={texts.halted}>
          ■ halted
        </span>
      )}
      <Figure label="late tuples" text={texts.late} tone="amber">
        {" "}
        late
      </Figure>
      <Figure label="dead letters" text={texts.dead} tone="red">
        {" "}
        dead
      </Figure>
      <Figure label="shed tuples" text={texts.shed} tone="shed">
        {" "}
        shed
      </Figure>
      <Figure label="share that passes" text={texts.passes} />
      <Figure label="cost per tuple" text={texts.cost} />
      <Figure label="rows held" text={texts.held}>
        {" "}
        held
      </Figure>
    </div>
  );
}

type FigureProps = { label: string; text: string; tone?: string; children?: ReactNode };

function Figure({ label, text, tone, children }: FigureProps) {
  if (!text) return null;
  return (
    <span className={`figure ${tone ? `tone-${tone}` : ""}`} title={label}>
      {text}
      {children}
    </span>
  );
}
