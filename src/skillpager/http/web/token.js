/** The token of the service, stored until the tab is closed. */

import { byId } from "./dom.js";

const KEY = "skillpager-token";
let asking = null;

/** @returns {string|null} */
export const token = () => sessionStorage.getItem(KEY);

/**
 * Ask the user for the token; simultaneous calls share one form.
 * @param {string|null} refused The token that the service has just refused.
 * @returns {Promise<void>}
 */
export function askToken(refused) {
  if (!asking && token() !== refused) return Promise.resolve();
  asking ??= show(refused !== null).finally(() => { asking = null; });
  return asking;
}

function show(wrong) {
  const dialog = byId("token-dialog");
  const field = byId("token");
  byId("token-wrong").hidden = !wrong;
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.oncancel = (event) => event.preventDefault();
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem(KEY, field.value.trim());
      dialog.close();
      resolve();
    };
  });
}
