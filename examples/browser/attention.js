/**
 * Shows attention weights as a table with a row for each target token and a column for each source
 * token. A stronger colour is a larger weight.
 *
 * @param {HTMLTableElement} table Its contents are replaced.
 * @param {string[]} source The source tokens.
 * @param {string[]} target The target tokens.
 * @param {ArrayLike<number>[]} weights For each target token, a weight for each source token.
 */
export function drawAttention(table, source, target, weights) {
  const head = row(heading("", "col"), ...source.map((piece) => heading(piece, "col")));
  const rows = target.map((piece, t) => {
    const cells = source.map((from, s) => cell(weights[t][s], piece, from));
    return row(heading(piece, "row"), ...cells);
  });
  table.replaceChildren(section("thead", head), section("tbody", ...rows));
}

function cell(weight, piece, from) {
  const element = document.createElement("td");
  const percent = `${Math.round(100 * weight)} %`;
  element.style.setProperty("--weight", weight.toFixed(3));
  element.title = `${piece} attends to ${from}: ${percent}`;
  element.setAttribute("aria-label", percent);
  return element;
}

function heading(piece, scope) {
  const element = document.createElement("th");
  element.scope = scope;
  const name = document.createElement("span");
  name.textContent = piece;
  element.append(name);
  return element;
}

function row(...cells) {
  return section("tr", ...cells);
}

function section(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}
