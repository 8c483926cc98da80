/** Requests to the service: aborts stale ones, asks for a missing token, repeats those to a busy service. */

import { askToken, token } from "./token.js";

const BUSY_TRIES = 3;
const BUSY_WAIT = 1000;

/** Why the service does not answer, in its own words. */
export class Problem extends Error {}

/**
 * Return what the service answers.
 * @param {string} path
 * @param {{body?: object, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export async function ask(path, { body, signal } = {}) {
  for (let tries = 1; ; tries += 1) {
    const given = token();
    const answer = await send(path, body, signal, given);
    if (answer.ok) return answer.json();
    if (answer.status === 401) await askToken(given);
    else if (answer.status === 503 && tries < BUSY_TRIES) await new Promise((resolve) => { setTimeout(resolve, BUSY_WAIT); });
    else throw new Problem(await detail(answer));
  }
}

/** Runs one task at a time: a new one aborts the one before. */
export class Latest {
  #controller = new AbortController();

  /**
   * Return what `work` returns; null when a later task has taken its place.
   * @template T
   * @param {(signal: AbortSignal) => Promise<T>} work
   * @returns {Promise<T|null>}
   */
  async run(work) {
    this.#controller.abort();
    const controller = this.#controller = new AbortController();
    try {
      const result = await work(controller.signal);
      return controller.signal.aborted ? null : result;
    } catch (error) {
      if (controller.signal.aborted) return null;
      throw error;
    }
  }

  /** Abort the running task. */
  stop() {
    this.#controller.abort();
  }
}

async function send(path, body, signal, given) {
  const headers = given ? { Authorization: `Bearer ${given}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
  try {
    return await fetch(path, { ...options, headers, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The service does not answer: is it still running?");
  }
}

async function detail(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `The service answered with status ${answer.status}.`;
  }
}
