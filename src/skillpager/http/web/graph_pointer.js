/** Mouse and fingers on the graph: choose, drag, pinch, scroll. */

// a pointer that moves less is a click
const CLICK_DISTANCE = 5;

/**
 * Let pointers move a view.
 * @param {HTMLElement} canvas
 * @param {{pan: (x: number, y: number) => void, zoom: (factor: number, x: number, y: number) => void,
 *   at: (x: number, y: number) => string|null, choose: (id: string|null) => void, open: (id: string) => void}} view
 */
export function pointAt(canvas, view) {
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let moved = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (!down.size) moved = 0;
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  });

  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const now = { x: event.offsetX, y: event.offsetY };
    moved += Math.hypot(now.x - before.x, now.y - before.y);
    if (moved > CLICK_DISTANCE) canvas.classList.add("dragging");
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (other) view.zoom(distance(now, other) / Math.max(1, distance(before, other)), other.x, other.y);
    else view.pan(now.x - before.x, now.y - before.y);
    down.set(event.pointerId, now);
  });

  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      down.delete(event.pointerId);
      canvas.classList.remove("dragging");
      if (name === "pointerup" && moved <= CLICK_DISTANCE) view.choose(view.at(event.offsetX, event.offsetY));
    });
  }

  canvas.addEventListener("dblclick", (event) => {
    const id = view.at(event.offsetX, event.offsetY);
    if (id) view.open(id);
  });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.offsetX, event.offsetY);
  }, { passive: false });
}

const distance = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
