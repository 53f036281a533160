import { lazy, type ComponentType, type LazyExoticComponent } from "react";

/** A component that is loaded when it is first shown; if that fails, showing it again loads it anew. */
export function onDemand<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let current: LazyExoticComponent<ComponentType<Props>>;
  const renew = () => {
    current = lazy(() =>
      load().then(
        (component) => ({ default: component }),
        (error: unknown) => {
          // React keeps the failure of a lazy component for ever.
          renew();
          throw error;
        },
      ),
    );
  };
  renew();
  return function OnDemand(props: Props) {
    const Loaded = current as unknown as ComponentType<Props>;
    return <Loaded {...props} />;
  };
}
