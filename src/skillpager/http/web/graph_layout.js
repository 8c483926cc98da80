/** Where nodes stand in the graph: sections in columns, nodes from top to bottom in document order. */

export const WIDTH = 210;
export const HEIGHT = 24;
const ROW = 34;
const TITLE = 30;
const COLUMN = 270;
const SECTION_GAP = 26;
// a page of columns is about this much wider than high
const ASPECT = 1.6;

/**
 * @typedef {{node: any, x: number, y: number}} Placed
 * @typedef {{title: string, x: number, y: number}} Title
 */

/**
 * Return places of nodes and titles of sections.
 * @param {any[]} nodes In document order.
 * @returns {{placed: Placed[], titles: Title[], width: number, height: number}}
 */
export function layOut(nodes) {
  const sections = sectionsOf(nodes);
  const total = sections.reduce((sum, section) => sum + heightOf(section), 0);
  const tallest = Math.max(heightOf(sections[0] ?? { nodes: [] }), Math.sqrt((total * COLUMN) / ASPECT));
  const placed = [];
  const titles = [];
  let [x, y, bottom] = [0, 0, 0];
  for (const section of sections) {
    if (y > 0 && y + heightOf(section) > tallest * 1.15) [x, y] = [x + COLUMN, 0];
    titles.push({ title: section.title, x, y });
    y += TITLE;
    for (const node of section.nodes) {
      placed.push({ node, x, y });
      y += ROW;
    }
    bottom = Math.max(bottom, y);
    y += SECTION_GAP;
  }
  return { placed, titles, width: x + WIDTH, height: bottom };
}

/** Neighbours of one file and one second-level heading. */
function sectionsOf(nodes) {
  const sections = [];
  for (const node of nodes) {
    const title = node.heading_path[1] ?? node.heading_path[0] ?? node.file;
    const key = `${node.file}\n${title}`;
    if (sections.at(-1)?.key !== key) sections.push({ key, title, nodes: [] });
    sections.at(-1).nodes.push(node);
  }
  return sections;
}

const heightOf = (section) => TITLE + section.nodes.length * ROW + SECTION_GAP;
