import { Component, type ErrorInfo, type ReactNode } from "react";

type Props = { label: string; children: ReactNode; quiet?: boolean };
type State = { failed: boolean };

const AGAIN_MS = 2000;

/** A part of the page whose failure leaves the rest alone; it is tried again after a moment. */
export class Boundary extends Component<Props, State> {
  override state: State = { failed: false };
  private timer: ReturnType<typeof setTimeout> | undefined;

  static getDerivedStateFromError(): State {
    return { failed: true };
  }

  override componentDidCatch(error: Error, info: ErrorInfo): void {
    console.error(`${this.props.label}: ${error.message}`, info.componentStack);
    this.timer = setTimeout(() => this.setState({ failed: false }), AGAIN_MS);
  }

  override componentWillUnmount(): void {
    clearTimeout(this.timer);
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return this.props.quiet ? null : <p className="muted">The {this.props.label} could not be shown.</p>;
  }
}
