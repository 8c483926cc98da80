/** Draws the graph on a canvas, in the colours of the style sheet. */

import { HEIGHT, WIDTH } from "./graph_layout.js";
import { KINDS, snippet, TYPES } from "./words.js";

const DASHES = { sequence: [], semantic: [2, 4], reference: [], condition: [7, 4] };
const STROKES = { sequence: 1.2, semantic: 1.2, reference: 2.2, condition: 1.8 };
// smaller than this on the screen, text is not worth drawing
const LEAST_TEXT_SCALE = 0.45;

/**
 * Return the colours in force.
 * @param {HTMLElement} element
 * @returns {Record<string, string>}
 */
export function readColors(element) {
  const probe = document.createElement("span");
  element.append(probe);
  const colors = {};
  for (const name of ["paper", "ink", "soft", "line", "focus", ...TYPES, ...KINDS]) {
    probe.style.color = `var(--${name})`;
    colors[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return colors;
}

/**
 * Draw one picture.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./graph_view.js").Picture} picture
 */
export function draw(context, picture) {
  const { scale, left, top, ratio, width, height } = picture;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, left * ratio, top * ratio);
  drawEdges(context, picture);
  context.setLineDash([]);
  const view = { x0: -left / scale - WIDTH, y0: -top / scale - HEIGHT, x1: (width - left) / scale, y1: (height - top) / scale };
  for (const placed of picture.placed) {
    const { x, y } = placed;
    if (x > view.x0 && x < view.x1 && y > view.y0 && y < view.y1) drawNode(context, placed, picture);
  }
  context.globalAlpha = 1;
  drawTitles(context, picture);
}

/** All edges of a kind are one path: a thousand nodes have several thousand edges. */
function drawEdges(context, { edges, places, colors, near, scale }) {
  for (const kind of KINDS) {
    context.strokeStyle = colors[kind];
    context.lineWidth = STROKES[kind];
    // from afar dashes are not seen, and cost ten times as much
    context.setLineDash(scale >= LEAST_TEXT_SCALE ? DASHES[kind] : []);
    for (const lit of near ? [false, true] : [false]) {
      context.globalAlpha = lit ? 1 : near ? 0.08 : kind === "semantic" ? 0.35 : 0.65;
      context.beginPath();
      for (const edge of edges) {
        if (edge.kind !== kind || Boolean(near?.edges.has(edge)) !== lit) continue;
        addEdge(context, places.get(edge.source), places.get(edge.target), kind);
      }
      context.stroke();
    }
  }
}

function addEdge(context, from, to, kind) {
  const [x, y] = [WIDTH, HEIGHT / 2];
  if (kind === "sequence" && from.x === to.x) {
    context.moveTo(from.x + 14, from.y + HEIGHT);
    context.lineTo(to.x + 14, to.y);
    return;
  }
  const ahead = to.x > from.x;
  const start = from.x + (ahead || to.x === from.x ? x : 0);
  const end = to.x + (ahead ? 0 : x);
  const bend = to.x === from.x ? 20 + Math.min(40, Math.abs(to.y - from.y) / 6) : (end - start) / 2;
  context.moveTo(start, from.y + y);
  context.bezierCurveTo(start + bend, from.y + y, to.x === from.x ? end + bend : end - bend, to.y + y, end, to.y + y);
}

function drawNode(context, placed, picture) {
  const { lit, near, current, scale, colors } = picture;
  const { node, x, y } = placed;
  const on = !lit || lit.has(node.id);
  context.globalAlpha = near && !near.nodes.has(node.id) ? 0.25 : on ? 1 : 0.6;
  if (scale < LEAST_TEXT_SCALE) drawSmall(context, placed, picture, on);
  else drawLarge(context, placed, picture, on);
  if (node.id !== current) return;
  context.globalAlpha = 1;
  context.lineWidth = Math.max(3, 2 / scale);
  context.strokeStyle = colors.focus;
  context.strokeRect(x, y, WIDTH, HEIGHT);
}

/** From afar the colour alone is seen. */
function drawSmall(context, { node, x, y }, { lit, colors }, on) {
  context.fillStyle = colors.paper;
  context.fillRect(x, y, WIDTH, HEIGHT);
  context.globalAlpha *= lit && !on ? 0.3 : 0.9;
  context.fillStyle = colors[node.type];
  context.fillRect(x, y, WIDTH, HEIGHT);
}

function drawLarge(context, { node, x, y }, { lit, colors }, on) {
  const alpha = context.globalAlpha;
  context.beginPath();
  context.roundRect(x, y, WIDTH, HEIGHT, 4);
  context.fillStyle = colors.paper;
  context.fill();
  context.fillStyle = colors[node.type];
  if (lit && on) {
    context.globalAlpha = alpha * 0.3;
    context.fill();
    context.globalAlpha = alpha;
  }
  context.lineWidth = 1;
  context.strokeStyle = on && lit ? colors[node.type] : colors.line;
  context.stroke();
  context.fillRect(x, y, 7, HEIGHT);
  context.fillStyle = colors.ink;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillText(`${node.id}  ${snippet(node.text, 26)}`, x + 13, y + HEIGHT / 2 + 0.5, WIDTH - 18);
}

function drawTitles(context, { titles, colors, scale }) {
  // readable from afar as well
  const size = Math.min(26, Math.max(13, 10 / scale));
  context.fillStyle = colors.soft;
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "alphabetic";
  for (const { title, x, y } of titles) context.fillText(snippet(title, Math.round(360 / size)), x, y + 20);
}
