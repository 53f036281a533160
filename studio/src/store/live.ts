/** What the server says while it runs: picture, samples, stories, log. Components use `useLive`. */

import { useEffect } from "react";
import { useStore } from "zustand";
import { useShallow } from "zustand/react/shallow";
import { createStore } from "zustand/vanilla";

import { api, openSocket } from "../api/client";
import type { SampleOrder, StoryEntry, Subscription } from "../api/types";
import { LiveConnection } from "./connection";
import { applyFrame, emptyLive, sampleKey, type LiveState, type Sample } from "./frames";
import { omit } from "./omit";

export const liveStore = createStore<LiveState>()(() => emptyLive);

/** Part of the live state. The component renders only when the part changes, compared shallowly. */
export function useLive<T>(selector: (state: LiveState) => T): T {
  return useStore(liveStore, useShallow(selector));
}

const connection = new LiveConnection(() => openSocket("live"), {
  frame: (frame) => {
    const { change, resync } = applyFrame(liveStore.getState(), frame);
    liveStore.setState(change);
    if (resync) connection.resync();
  },
  status: (status, attempt) => {
    const before = liveStore.getState();
    if (before.status === status && before.attempt === attempt) return;
    // A problem was that of a subscription or connection that is over.
    liveStore.setState(status === "live" ? { status, attempt, problem: null } : { status, attempt, seq: null });
  },
  // A refused WebSocket looks like a lost one; a request tells whether the token is taken.
  unopened: () => void api.server().catch(() => undefined),
});

// ── what is on the screen decides what is subscribed to ──

type SampleWish = { order: SampleOrder; users: number };
const samples = new Map<string, SampleWish>();
const stories = new Map<string, number>();
let planned = false;

/** The subscription that the wishes of all components make together. */
export function subscription(): Subscription {
  return {
    picture: document.visibilityState !== "hidden",
    samples: [...samples.values()].map(({ order }) => order),
    stories: [...stories.keys()],
  };
}

function plan(): void {
  if (planned) return;
  planned = true;
  queueMicrotask(() => {
    planned = false;
    if (liveStore.getState().problem) liveStore.setState({ problem: null });
    connection.want(subscription());
  });
}

/** Ask for the latest tuples of an arc until the returned function is called. */
export function wantSample(arc: string, limit: number, where: string | null): () => void {
  const order = { arc, limit, where };
  const key = sampleKey(order);
  const wish = samples.get(key) ?? { order, users: 0 };
  wish.users += 1;
  samples.set(key, wish);
  plan();
  return () => {
    wish.users -= 1;
    if (wish.users === 0) {
      samples.delete(key);
      liveStore.setState({ samples: omit(liveStore.getState().samples, key) });
    }
    plan();
  };
}

/** Ask for the story of an entity until the returned function is called. */
export function wantStory(name: string): () => void {
  stories.set(name, (stories.get(name) ?? 0) + 1);
  plan();
  return () => {
    const users = (stories.get(name) ?? 1) - 1;
    if (users) stories.set(name, users);
    else stories.delete(name);
    plan();
  };
}

/** Connect and stay connected until the returned function is called. */
export function startLive(): () => void {
  const seen = () => {
    plan();
    if (document.visibilityState !== "hidden") connection.hurry();
  };
  document.addEventListener("visibilitychange", seen);
  plan();
  connection.start();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    connection.stop();
  };
}

let holders = 0;
let release: (() => void) | null = null;

/** Keep the live connection open while a component is mounted; several share one. */
export function useLiveConnection(): void {
  useEffect(() => {
    holders += 1;
    release ??= startLive();
    return () => {
      holders -= 1;
      if (holders) return;
      release?.();
      release = null;
    };
  }, []);
}

/** The latest tuples of an arc; null until they come. */
export function useSample(arc: string | null, limit: number, where: string | null): Sample | null {
  useEffect(() => (arc ? wantSample(arc, limit, where) : undefined), [arc, limit, where]);
  return useLive((state) => (arc ? state.samples[sampleKey({ arc, limit, where })] : undefined)) ?? null;
}

const NO_ENTRIES: StoryEntry[] = [];

/** The story of an entity, oldest first. */
export function useStory(name: string | null): StoryEntry[] {
  useEffect(() => (name ? wantStory(name) : undefined), [name]);
  return useLive((state) => (name ? state.stories[name] : undefined)) ?? NO_ENTRIES;
}
