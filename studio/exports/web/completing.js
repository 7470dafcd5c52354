// The page of a model that completes sets, behind worker.js.

const input = document.getElementById("file");
const { clear } = form, play = document.getElementById("play");
const rowChoice = document.getElementById("row"), speed = document.getElementById("speed");
const size = about.size, bytes = 4 * size * size, zoom = Math.max(1, Math.floor(64 / size));
const columns = Math.max(...about.rows.map(([, cells]) => cells.length));
const given = about.names.map(() => null); // RGBA bytes of each given cell
const canvases = []; // of the table, by cell
let opening = 0, tick = 0, playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;

const worker = startWorker(drawSet, "candidate", (answer) => {
  list.append(tile(answer));
  animate();
});

// Runs in the worker.
function drawSet(model, { cells, given, seed, variety }) {
  return { isLikely: variety === 0 && given.some(Boolean), rgba: model.complete(cells, given, seed, variety) };
}

// The table of given cells.

function newCanvas(width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.style.width = `${width * zoom}px`;
  canvas.style.height = `${height * zoom}px`;
  return canvas;
}

function fillTable() {
  const body = document.querySelector("#given tbody");
  for (const [name, cells] of about.rows) {
    const row = body.insertRow(), head = document.createElement("th");
    head.textContent = name;
    head.scope = "row";
    row.append(head, ...cells.map(cellOf));
    rowChoice.add(new Option(name, rowChoice.length - 1));
  }
}

function cellOf(index) {
  const cell = document.createElement("td"), open = document.createElement("button"), words = document.createElement("span");
  const empty = document.createElement("button");
  canvases[index] = newCanvas(size, size);
  open.type = empty.type = "button";
  open.title = `Open a picture for ${about.names[index]}`;
  open.setAttribute("aria-label", open.title);
  open.onclick = () => {
    opening = index;
    input.click();
  };
  open.onkeydown = (event) => {
    if (event.key === "Delete" || event.key === "Backspace") give(index, null);
  };
  words.textContent = about.names[index].split("/").slice(1).join("/");
  open.append(canvases[index], words);
  empty.textContent = "×";
  empty.className = "empty";
  empty.title = `Clear ${about.names[index]}`;
  empty.setAttribute("aria-label", empty.title);
  empty.hidden = true;
  empty.onclick = () => give(index, null);
  cell.dataset.cell = index;
  cell.append(open, empty);
  return cell;
}

function give(index, rgba) {
  given[index] = rgba;
  const context = canvases[index].getContext("2d");
  context.clearRect(0, 0, size, size);
  if (rgba) context.putImageData(new ImageData(rgba, size, size), 0, 0);
  canvases[index].closest("td").querySelector(".empty").hidden = !rgba;
  clear.disabled = !given.some(Boolean);
  form.go.textContent = clear.disabled ? "Draw new" : "Draw the rest";
}

// Pictures: a cell goes to the cell that it was dropped on or is named after, or to the first empty cell; a sheet fills
// all cells that it has.

async function openFile(file, target) {
  const name = file.name || "The picture", picture = await pixelsOf(file);
  const [width, height] = [columns * size, about.rows.length * size];
  const found = given.slice();
  if (picture.width === size && picture.height === size) {
    const stem = simple(name.replace(/\.[^.]*$/, ""));
    const named = about.names.findIndex((own) => simple(own) === stem), free = given.findIndex((rgba) => !rgba);
    found[[target, named, free, 0].find((index) => index >= 0)] = picture.data;
    if (isEmpty(picture.data)) return `${name} has no visible pixel.`;
  } else if (picture.width === width && picture.height === height) {
    if (isEmpty(picture.data)) return `${name} has no visible pixel.`;
    about.rows.forEach(([, cells], y) => cells.forEach((index, x) => (found[index] = partOf(picture, x, y) || found[index])));
  } else {
    const sheet = about.names.length > 1 ? `, a sheet ${width} x ${height}` : "";
    return `${name} has ${picture.width} x ${picture.height} pixels. A cell has ${size} x ${size}${sheet}.`;
  }
  const colours = new Set(found.filter(Boolean).flatMap((rgba) => Array.from(visible(rgba)))).size;
  if (colours > about.colours) return `With ${name}, the cells have ${colours} colours. The model takes ${about.colours}.`;
  found.forEach((rgba, index) => rgba !== given[index] && give(index, rgba));
  return "";
}

async function pixelsOf(file) {
  const picture = await createImageBitmap(file, { colorSpaceConversion: "none" });
  const canvas = newCanvas(picture.width, picture.height), context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(picture, 0, 0);
  return context.getImageData(0, 0, picture.width, picture.height);
}

// The cell in a column and a row of a sheet; null if it is empty.
function partOf(sheet, column, row) {
  const rgba = new Uint8ClampedArray(bytes);
  for (let y = 0; y < size; y++) {
    const start = 4 * ((row * size + y) * sheet.width + column * size);
    rgba.set(sheet.data.subarray(start, start + 4 * size), 4 * size * y);
  }
  return isEmpty(rgba) ? null : rgba;
}

function visible(rgba) {
  return new Uint32Array(rgba.buffer).filter((_, index) => rgba[4 * index + 3]);
}

function isEmpty(rgba) {
  return !rgba.some((level, index) => index % 4 === 3 && level);
}

function simple(name) {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
}

async function openFiles(files, target = -1) {
  const problems = [];
  for (const file of files) {
    const problem = await openFile(file, target).catch((error) => `${file.name} can't be read: ${error.message}`);
    if (problem) problems.push(problem);
  }
  if (files.length) statusLine.textContent = problems.join(" ") || "Ready.";
}

function cellAt(element) {
  const cell = element?.closest?.("[data-cell]");
  return cell ? Number(cell.dataset.cell) : -1;
}

// Candidates.

// A sheet: a row for each view.
function sheetOf(rgba) {
  const canvas = newCanvas(columns * size, about.rows.length * size), context = canvas.getContext("2d");
  about.rows.forEach(([, cells], y) => cells.forEach((index, x) => {
    context.putImageData(new ImageData(rgba.slice(index * bytes, (index + 1) * bytes), size, size), x * size, y * size);
  }));
  return canvas;
}

function tile(answer) {
  const item = document.createElement("li"), button = document.createElement("button"), words = document.createElement("span");
  const sheet = sheetOf(answer.rgba);
  answer.player = newCanvas(size, size);
  answer.player.setAttribute("aria-hidden", "true");
  words.textContent = answer.isLikely ? "most likely" : `seed ${answer.seed}`;
  button.type = "button";
  button.title = `Candidate ${drawn.length}, ${words.textContent}: save as PNG`;
  button.setAttribute("aria-label", button.title);
  button.onclick = () => download(sheet, `${about.title} ${answer.seed}.png`);
  button.append(sheet, words);
  item.append(button, ...(columns > 1 ? [answer.player] : []));
  return item;
}

// Shows the current frame of the chosen row, or of all rows side by side, for each candidate.
function animate() {
  const chosen = Number(rowChoice.value), rows = chosen < 0 ? about.rows : [about.rows[chosen]];
  for (const { rgba, player } of drawn) {
    player.width = size * rows.length;
    player.height = size;
    player.style.width = `${player.width * zoom}px`;
    rows.forEach(([, cells], x) => {
      const start = cells[tick % cells.length] * bytes;
      player.getContext("2d").putImageData(new ImageData(rgba.slice(start, start + bytes), size, size), x * size, 0);
    });
  }
}

function step() {
  if (playing) tick++;
  animate();
  setTimeout(step, 1000 / Math.min(30, Math.max(1, speed.valueAsNumber || 6)));
}

form.onsubmit = (event) => {
  event.preventDefault();
  if (given.every(Boolean)) {
    statusLine.textContent = "All cells are given. Clear a cell to draw it.";
    return;
  }
  const count = form.count.valueAsNumber, round = beginRound(count), cells = new Uint8ClampedArray(given.length * bytes);
  given.forEach((rgba, index) => rgba && cells.set(rgba, index * bytes));
  document.getElementById("player").hidden = columns < 2;
  statusLine.textContent = "Drawing…";
  for (let index = 0; index < count; index++) {
    const seed = form.seed.valueAsNumber + about.placesApart * index;
    const variety = index ? form.variety.valueAsNumber : 0; // the first has the most likely colours
    worker.postMessage({ round, cells, given: given.map(Boolean), seed, variety });
  }
};

form.dice.onclick = () => {
  form.seed.value = Math.floor(Math.random() * 1e6);
  form.requestSubmit(form.go);
};

play.onclick = () => {
  playing = !playing;
  play.textContent = playing ? "Pause" : "Play";
};

clear.onclick = () => given.forEach((_, index) => give(index, null));
rowChoice.onchange = animate;
input.onchange = async () => {
  await openFiles(input.files, opening);
  input.value = "";
};
ondragover = (event) => {
  event.preventDefault();
  document.querySelectorAll(".over").forEach((cell) => cell.classList.remove("over"));
  event.target.closest?.("[data-cell]")?.classList.add("over");
};
ondrop = (event) => {
  event.preventDefault();
  document.querySelectorAll(".over").forEach((cell) => cell.classList.remove("over"));
  openFiles([...event.dataTransfer.files], cellAt(event.target));
};
onpaste = (event) => openFiles([...event.clipboardData.files], cellAt(document.activeElement));

fillTable();
play.textContent = playing ? "Pause" : "Play";
if (columns > 1) step();
