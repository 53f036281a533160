import { useStory } from "../store/live";
import { Story } from "./Story";

/** Why one box, output or query ran, waited, was moved or was shed. */
export function StoryTab({ name }: { name: string }) {
  const entries = useStory(name);
  return <Story entries={entries} about={name} empty={`No decision about ${name} has been recorded yet.`} />;
}
