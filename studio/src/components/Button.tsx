import type { ButtonHTMLAttributes } from "react";

import { Icon, type IconName } from "./Icon";

type Props = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: "plain" | "primary" | "danger" | "quiet";
  icon?: IconName;
  /** Why the button cannot be used now; it is disabled and says so. */
  reason?: string | null;
};

/** A button; with `reason` it is disabled and its tooltip gives the reason. */
export function Button({ look = "plain", icon, reason, children, className, title, ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${look} ${children ? "" : "icon-only"} ${className ?? ""}`}
      disabled={rest.disabled || Boolean(reason)}
      title={reason ?? title}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}
