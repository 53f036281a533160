type Props = {
  values: (number | null)[];
  label: string;
  width?: number;
  height?: number;
  low?: number;
  high?: number;
};

/** A small line without axes; gaps where nothing is known. */
export function Sparkline({ values, label, width = 64, height = 16, low = 0, high = 1 }: Props) {
  return (
    <svg className="sparkline" width={width} height={height} role="img" aria-label={label}>
      <path d={sparkPath(values, width, height, low, high)} />
    </svg>
  );
}

export function sparkPath(
  values: (number | null)[],
  width: number,
  height: number,
  low: number,
  high: number,
): string {
  const step = values.length > 1 ? (width - 2) / (values.length - 1) : 0;
  let pen = "M";
  let path = "";
  values.forEach((value, at) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const part = high > low ? Math.min(Math.max((value - low) / (high - low), 0), 1) : 0;
    path += `${pen}${(1 + at * step).toFixed(1)} ${(height - 1.5 - part * (height - 3)).toFixed(1)}`;
    pen = "L";
  });
  return path;
}
